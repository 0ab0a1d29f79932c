"""Everything that must hold after every act, worked out a second time."""
