"""What a run takes: FLOP counted, speed measured."""
