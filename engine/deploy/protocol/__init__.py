"""Control messages between both sides, and their codec. It may import what engine/deploy may."""
