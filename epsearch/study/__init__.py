"""What a study is: its kinds, the options that describe it, their parsers and bounds."""
