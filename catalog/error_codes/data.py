"""Causes and cures of errors: files, registered tables and databases."""

from __future__ import annotations

DATA: dict[str, tuple[str, str]] = {
    "DAT-4101": (
        "The path of a table does not exist.",
        "Correct the path. Paths are read from the current directory.",
    ),
    "DAT-4102": ("No file matches the pattern.", "Correct the pattern, or write the files first."),
    "DAT-4103": (
        "The path is a socket, a device or another thing that is no regular file.",
        "Give files, or a directory of files.",
    ),
    "DAT-4104": ("This user may not read the file.", "chmod it, or run penstock as a user who may."),
    "DAT-4105": (
        "The operating system failed to read the file.",
        "Read the detail; check the disk or the mount.",
    ),
    "DAT-4106": (
        "A compressed file is damaged or cut off, or is not compressed.",
        "Copy it again, or write 'compression' = 'none'.",
    ),
    "DAT-4107": (
        "A file or table changed after a job began to read it.",
        "Start the job without its state, or put the former file back.",
    ),
    "DAT-4108": ("A directory has files of another format.", "Give a path such as 'logs/*.csv'."),
    "DAT-4109": ("No file system of this URL can be opened.", "Use a scheme of the hint, or a local path."),
    "DAT-4110": (
        "A partition column has no directory name=value, or a value of another type.",
        "Correct PARTITIONED BY, or the directory.",
    ),
    "DAT-4111": (
        "A file of changes came that sorts before one already read.",
        "Name such files in the order they are written.",
    ),
    "DAT-4112": (
        "A state of a materialized view was cleaned away while it was read.",
        "Run the query again.",
    ),
    "DAT-4113": (
        "A materialized view that is followed has failed or was dropped.",
        "Start the view again, then its readers.",
    ),
    "DAT-4114": (
        "A job resumed, and a socket cannot send its lines again.",
        "Set 'socket.on-restore' = 'continue' in the table, or begin without state.",
    ),
    "DAT-4115": (
        "Nothing listens at the address of a socket table.",
        "Start the sender first, such as nc -lk 9999.",
    ),
    "DAT-4116": ("A line of a socket is longer than the limit.", "End each JSON object with a line end."),
    "DAT-4120": (
        "A table without columns reads files that are empty, or a directory without files.",
        "Declare the columns of the table, or write the files first.",
    ),
    "DAT-4121": (
        "The columns of a file cannot be inferred.",
        "Declare the columns of the table; the hint says what the file lacks.",
    ),
    "DAT-4122": (
        "A sample of the file is no rows, such as a JSON array of numbers or text above the header.",
        "Make lines of it as the hint shows.",
    ),
    "DAT-4123": (
        "A JSON column has a value that no type reads, such as an object with a field twice.",
        "Declare the other columns with their types, or write it in another way.",
    ),
    "DAT-4124": (
        "A directory without declared columns has files of several formats or layouts.",
        "Give a path that names one kind, such as 'logs/*.csv'.",
    ),
    "DAT-4125": (
        "The bytes of a text file are not in the encoding of the table.",
        "Write 'csv.encoding' = 'windows-1252' or what it is in; convert other formats with iconv.",
    ),
    "DAT-4126": (
        "Stdin was read by an earlier query, or is a terminal.",
        "Read stdin in one query only, and pipe rows into the command.",
    ),
    "DAT-4201": (
        "A record cannot be read as the table declares it.",
        "Correct the file, or create the table with 'on-error' = 'skip' or 'table'.",
    ),
    "DAT-4202": (
        "The header of a CSV file cannot be read.",
        "Check encoding and delimiter, or write 'csv.header' = 'false'.",
    ),
    "DAT-4203": (
        "A file has no column of a declared name.",
        "Declare the names of the file; DESCRIBE shows the table's.",
    ),
    "DAT-4204": (
        "The format cannot hold a column of this type.",
        "Declare the column STRING, or use parquet.",
    ),
    "DAT-4205": (
        "A file has another type than the table declares.",
        "Declare the type of the file, and CAST in the query.",
    ),
    "DAT-4206": ("A value of a file does not fit the declared type.", "Declare a wider type."),
    "DAT-4207": (
        "A record is longer than the limit: a quote or line end is probably missing.",
        "Check quotes and line ends of the file.",
    ),
    "DAT-4208": (
        "A file has several columns of one name.",
        "Rename them in the file, or leave the column out.",
    ),
    "DAT-4501": (
        "A Python value cannot be a table, or its columns differ in length or type.",
        "Register an Arrow table, a data frame, a dict of lists, or an iterable of dicts.",
    ),
    "DAT-4502": (
        "A table was registered by a program that has ended.",
        "Register it again under the same name.",
    ),
    "DAT-4503": (
        "An iterator can be read once, and was read already.",
        "Register a list or a function that makes an iterator.",
    ),
    "DAT-4504": (
        "A batch of a registered iterable has other columns or types than the first.",
        "Let each batch have the columns of the first.",
    ),
    "DAT-4505": (
        "The registered iterable or function raised an exception.",
        "Correct it; the message has its text.",
    ),
    "DAT-4601": ("The path of a table to write is a file.", "Give a directory."),
    "DAT-4602": (
        "The path of a table to write is neither a directory nor in an object store.",
        "Write to a directory, or to a URL of s3://, gs:// or az://.",
    ),
    "DAT-4603": ("The directory of the table cannot be made.", "Give another path, or permission."),
    "DAT-4604": (
        "A file that a checkpoint promised is gone.",
        "Restore the directory from a backup, or begin without state.",
    ),
    "DAT-4605": (
        "A file of the same name is at the place where rows are published.",
        "Move it away, and start the job again.",
    ),
    "DAT-4606": (
        "Files cannot be written: the disk is full or fails.",
        "Free space and start again. What is not committed is written again.",
    ),
    "DAT-4607": ("A text format cannot hold bytes that are no UTF-8.", "Write hex(column), or use parquet."),
    "DAT-4608": ("A partition value has bytes that are no UTF-8.", "Partition by hex(column)."),
    "DAT-4609": (
        "A staged file cannot be read, so files cannot be merged.",
        "Check the disk. A restart from an earlier checkpoint writes the files anew.",
    ),
    "DAT-4610": ("A commit of a table is no longer there.", "Begin at a commit that is there."),
    "DAT-4611": ("A commit file is damaged.", "Restore it from a backup."),
    "DAT-4612": (
        "A commit file was written by a newer penstock.",
        "Read it with that version, or a newer one.",
    ),
    "DAT-4613": (
        "A committed file is gone or has another length.",
        "Begin at a later commit, or restore the file.",
    ),
    "DAT-4614": (
        "The bytes of a committed file differ from its checksum.",
        "Restore the file from a backup; check the disk.",
    ),
    "DAT-4615": (
        "The directory that INSERT OVERWRITE replaces has files that are not the table's.",
        "Move them out of the directory.",
    ),
    "DAT-4616": (
        "The file system cannot replace a directory in one step.",
        "Write to a local file system such as ext4 or xfs.",
    ),
    "DAT-4617": (
        "INSERT OVERWRITE meets a job that writes to the table.",
        "Stop that job first; started again it continues beside the new rows.",
    ),
    "DAT-4618": (
        "Another writer changed a table while a statement computed its new rows from it.",
        "Run the statement again; stop jobs that write to the table, where it happens each time.",
    ),
    "DAT-4619": (
        "Several rows of the source of a MERGE would change one row of its table.",
        "Make the source one row for each: GROUP BY the columns of ON.",
    ),
    "DAT-4620": ("Spark reads penstock without a path.", "Add .load('the directory of a table')."),
    "DAT-4621": (
        "An option of Spark's reader has a value that it does not take.",
        "Write it as the hint shows it.",
    ),
    "DAT-4622": (
        "The directory has no commit log.",
        "Give the directory of a filesystem table that a job has written.",
    ),
    "DAT-4623": (
        "Spark reads commits of parquet and arrow only.",
        "Write the table with 'format' = 'parquet'.",
    ),
    "DAT-4624": (
        "A materialized view cannot be streamed into Spark.",
        "INSERT its query INTO a filesystem table with 'changelog.mode' = 'retract'.",
    ),
    "DAT-4625": ("Spark asks for a column that the table has not.", "Use a column of the message."),
    "DAT-4626": ("Spark has no type for a column.", "CAST it in the query that writes it."),
    "DAT-4627": (
        "No job of the state directory fills the view.",
        "Give the --state directory, and a name of the hint.",
    ),
    "DAT-4628": (
        "Spark cannot write a mark beside the state it reads.",
        "Run Spark as a user who may write there.",
    ),
    "DAT-4629": (
        "Rows in parquet or arrow are written to a terminal.",
        "Send them into a file: penstock -c '..' > rows.parquet.",
    ),
    "DAT-4632": (
        "Stdout cannot be written: its disk is full or fails.",
        "Send it elsewhere, and start the job again.",
    ),
    "DAT-4633": ("The program that reads stdout has ended.", "Start the job again with a new reader."),
    "DAT-4630": (
        "After an UPDATE or MERGE two rows of a table would have the same PRIMARY KEY.",
        "Give each row a key of its own, or leave such rows out.",
    ),
    "DAT-4631": (
        "Files whose rows a statement would write again have a column that the table does not declare.",
        "Declare the column: its values would be lost.",
    ),
    "DAT-4700": ("The connector postgres needs psycopg.", "pip install 'penstock[postgres]'."),
    "DAT-4701": (
        "The database cannot be reached or opened.",
        "Check the URL or path, and that the server runs.",
    ),
    "DAT-4702": (
        "The database has no table of this name.",
        "Correct 'table-name'; the hint has the nearest one.",
    ),
    "DAT-4703": (
        "The table of the database has no column of this name.",
        "Declare the columns of the database.",
    ),
    "DAT-4704": (
        "A value of the database does not fit the declared type.",
        "Declare the column STRING to see it.",
    ),
    "DAT-4705": (
        "The database refused or broke off a statement.",
        "Read its message in the detail; the job tries again where that can help.",
    ),
    "DAT-4706": (
        "A column is declared with another type than in the database.",
        "Declare it as the hint says.",
    ),
    "DAT-4707": (
        "The database refuses the rows of a checkpoint.",
        "Correct what it reports, and start the job again: it resumes with these rows.",
    ),
}
