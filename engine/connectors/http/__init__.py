"""What HTTP servers answer, their events and websockets as tables; rows sent to servers."""
