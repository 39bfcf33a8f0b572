"""What driven motion and simulation share: guards, the search for events, their kinds, their log, how analyses end."""
