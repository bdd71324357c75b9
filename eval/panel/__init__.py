"""Does a change of searching help each kind of photo? One panel of sets, by kind, each scene counted once."""
