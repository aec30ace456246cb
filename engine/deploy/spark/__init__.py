"""Worker processes hosted by the executors of a Spark. It may import what engine/deploy may."""
