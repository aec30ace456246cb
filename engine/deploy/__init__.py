"""Worker processes: tasks of a job in other processes than the job master's. In engine it may import
task_manager and operators and the layers below.
"""
