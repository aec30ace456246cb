"""``penstock serve``: sessions of many clients over one state, and the listeners they connect to."""
