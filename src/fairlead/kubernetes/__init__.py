"""Work as pods: a scheduler for a real cluster, on the same core as everywhere else.

Decides how pods and nodes are said in events, and decisions in calls to the API server. Never decides which pod may
run: the scheduler does.
"""
