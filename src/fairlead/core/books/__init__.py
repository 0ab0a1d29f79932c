"""The books: what is so, each fact in one place. They change nothing but themselves.

Nearly every annotation needs one of the nouns below: for a type checker they are here. What runs imports their modules.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application as Application
    from fairlead.core.books.asks import Ask as Ask
    from fairlead.core.books.asks import Batch as Batch
    from fairlead.core.books.cluster import Cluster as Cluster
    from fairlead.core.books.demand import Demand as Demand
    from fairlead.core.books.demand import Shape as Shape
    from fairlead.core.books.node import Node as Node
    from fairlead.core.books.nodes import NodeTable as NodeTable
    from fairlead.core.books.partition import Partition as Partition
    from fairlead.core.books.queues import Queue as Queue
    from fairlead.core.books.user_limits import Ceiling as Ceiling
