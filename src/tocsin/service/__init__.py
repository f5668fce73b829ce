"""What can be done, one file per noun; every face calls only this."""
