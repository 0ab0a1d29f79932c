"""A recorded course to look at: any moment of a journal, be it of a service or of a simulation."""
