import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;

/** What programs of JDBC do, through PostgreSQL's driver: a line for each, which the test compares. */
public class JdbcProbe {
    public static void main(String[] words) throws Exception {
        try (Connection connection = DriverManager.getConnection(words[0], "me", "")) {
            DatabaseMetaData about = connection.getMetaData();
            say("product", about.getDatabaseProductName());
            setUp(connection);
            browse(about);
            prepared(connection);
            typed(connection);
            fetched(connection);
            refused(connection);
            cancelled(connection);
        }
    }

    private static void say(String what, Object value) {
        System.out.println(what + ": " + value);
    }

    private static void setUp(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE jdbc_t (k BIGINT NOT NULL, name STRING, d DECIMAL(10, 2), "
                + "PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'datagen', 'number-of-rows' = '1')");
            statement.execute("CREATE VIEW jdbc_v AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), "
                + "(3, CAST(NULL AS STRING))) AS x (k, name)");
            statement.execute("CREATE TABLE jdbc_endless (k BIGINT) "
                + "WITH ('connector' = 'datagen', 'rows-per-second' = '1000')");
        }
    }

    private static void browse(DatabaseMetaData about) throws SQLException {
        try (ResultSet rows = about.getSchemas()) {
            while (rows.next()) {
                if (rows.getString(1).equals("default_database")) {
                    say("schema", rows.getString(1));
                }
            }
        }
        try (ResultSet rows = about.getTables(null, null, "jdbc%", new String[] {"TABLE", "VIEW"})) {
            while (rows.next()) {
                say("table", rows.getString("TABLE_NAME") + " " + rows.getString("TABLE_TYPE"));
            }
        }
        try (ResultSet rows = about.getColumns(null, null, "jdbc_t", null)) {
            while (rows.next()) {
                String type = rows.getString("TYPE_NAME") + " " + rows.getInt("COLUMN_SIZE");
                say("column", rows.getString("COLUMN_NAME") + " " + type + " " + rows.getString("IS_NULLABLE"));
            }
        }
        try (ResultSet rows = about.getPrimaryKeys(null, null, "jdbc_t")) {
            while (rows.next()) {
                say("key", rows.getString("COLUMN_NAME"));
            }
        }
        try (ResultSet rows = about.getIndexInfo(null, null, "jdbc_t", false, false)) {
            while (rows.next()) {
                say("index", rows.getString("COLUMN_NAME"));
            }
        }
        try (ResultSet rows = about.getTypeInfo()) {
            int count = 0;
            while (rows.next()) {
                count++;
            }
            say("types", count > 0);
        }
    }

    private static void prepared(Connection connection) throws SQLException {
        // from the fifth execution on the driver names its statement, and asks for binary values
        try (PreparedStatement statement = connection.prepareStatement("SELECT name FROM jdbc_v WHERE k = ?")) {
            StringBuilder found = new StringBuilder();
            for (int i = 0; i < 9; i++) {
                statement.setInt(1, 1 + i % 3);
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        found.append(rows.getString(1));
                    }
                }
            }
            say("prepared", found);
            say("parameters", statement.getParameterMetaData().getParameterTypeName(1));
        }
    }

    private static void typed(Connection connection) throws SQLException {
        String sql = "SELECT CAST(? AS BIGINT) AS l, CAST(? AS DOUBLE) AS f, CAST(? AS DECIMAL(10, 2)) AS d, "
            + "CAST(? AS STRING) AS s, CAST(? AS BOOLEAN) AS b, TIMESTAMP '2024-01-02 03:04:05' AS ts, "
            + "DATE '2024-02-29' AS day, ARRAY[1, 2] AS a";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < 7; i++) {
                statement.setLong(1, 1L << 40);
                statement.setDouble(2, 1.5);
                statement.setBigDecimal(3, new BigDecimal("12.34"));
                statement.setString(4, "\u00e9");
                statement.setBoolean(5, true);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    if (i == 0 || i == 6) {
                        say("numbers", rows.getLong(1) + " " + rows.getDouble(2) + " " + rows.getBigDecimal(3));
                        say("others", rows.getString(4).length() + " " + rows.getBoolean(5) + " " + rows.getArray(8));
                        say("times", rows.getTimestamp(6).toLocalDateTime() + " " + rows.getDate(7).toLocalDate());
                        ResultSetMetaData columns = rows.getMetaData();
                        String types = columns.getColumnTypeName(1) + " " + columns.getColumnTypeName(3);
                        say("columns", types + " " + columns.getPrecision(3) + " " + columns.getColumnLabel(8));
                    }
                }
            }
        }
    }

    private static void fetched(Connection connection) throws SQLException {
        // a fetch size reads by portals, and only inside a transaction: so an endless SELECT has its first rows
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(20);
            try (ResultSet rows = statement.executeQuery("SELECT k FROM jdbc_endless")) {
                int count = 0;
                while (count < 50 && rows.next()) {
                    count++;
                }
                say("fetched", count);
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private static void refused(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("SELECT nothing FROM jdbc_v");
        } catch (SQLException error) {
            String said = error.getMessage();
            say("refused", error.getSQLState() + " " + said.contains("SQL-1042") + " " + said.contains("Position: 8"));
        }
        connection.createStatement().executeQuery("SELECT 1").close();
    }

    private static void cancelled(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread canceller = new Thread(() -> {
                try {
                    // until it runs: a cancel that comes before cancels nothing
                    while (!Thread.interrupted()) {
                        statement.cancel();
                        Thread.sleep(50);
                    }
                } catch (SQLException | InterruptedException ended) {
                    return;
                }
            });
            canceller.start();
            try {
                statement.executeQuery("SELECT k FROM jdbc_endless");
                say("cancelled", "not");
            } catch (SQLException error) {
                say("cancelled", error.getSQLState());
            } finally {
                canceller.interrupt();
                canceller.join();
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            statement.executeQuery("SELECT k FROM jdbc_endless");
        } catch (SQLException error) {
            say("timed out", error.getSQLState());
        }
    }
}
