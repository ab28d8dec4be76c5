"""Reading and writing files so that nothing is lost and nothing is believed unseen."""
