"""Import: records of other systems, in whatever form they come, made into a table that the simulator reads."""
