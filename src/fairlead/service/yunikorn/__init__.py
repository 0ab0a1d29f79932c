"""The reads of Apache YuniKorn's REST interface, so that its web page and scripts find what they expect."""
