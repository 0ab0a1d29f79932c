"""The small process that stands by one run: started by the machine, alive until the run's whole tree is gone.

Everything in this folder uses the standard library alone and relative imports alone, because it is loaded twice: as
part of the package by the service, and by itself (`__main__.py`) in an interpreter that knows no installed package.
"""
