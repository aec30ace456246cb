"""The properties of Kafka clients that a table may set, ``properties.*``. Any other one is refused: some name
programs, libraries or classes that a client would run.
"""

from __future__ import annotations

from penstock.catalog.connectors.option import Option, OptionKind

PROPERTIES = "properties."

# Names of the Java client that librdkafka has under another name.
JAVA_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.truststore.location": "ssl.ca.location",
}
_STRING, _INT, _BOOL = OptionKind.STRING, OptionKind.INT, OptionKind.BOOL


def _property(
    key: str, kind: OptionKind, help_: str, choices: tuple[str, ...] = (), *, secret: bool = False
) -> Option:
    return Option(PROPERTIES + key, kind, None, help_, choices, secret=secret)


CLIENT_PROPERTIES = (
    Option(
        PROPERTIES + "bootstrap.servers", required=True, help="the brokers to ask first, as host:port, .."
    ),
    _property("client.id", _STRING, "how brokers name this client"),
    _property("client.rack", _STRING, "the rack of this client: the nearest replica is read"),
    _property(
        "client.dns.lookup",
        OptionKind.ENUM,
        "how a name with several addresses is used",
        ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    _property("broker.address.family", OptionKind.ENUM, "addresses to connect to", ("any", "v4", "v6")),
    _property("socket.timeout.ms", _INT, "milliseconds a request may take"),
    _property("socket.connection.setup.timeout.ms", _INT, "milliseconds a connection may take to be made"),
    _property("socket.keepalive.enable", _BOOL, "TCP keep-alive"),
    _property("connections.max.idle.ms", _INT, "milliseconds until an unused connection is closed"),
    _property("reconnect.backoff.ms", _INT, "milliseconds until a broken connection is made anew"),
    _property("reconnect.backoff.max.ms", _INT, "the longest of these times"),
    _property("metadata.max.age.ms", _INT, "milliseconds until leaders of partitions are asked for again"),
    _property(
        "security.protocol",
        OptionKind.ENUM,
        "whether connections are encrypted and who the client is",
        ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    ),
    _property(
        "sasl.mechanism",
        OptionKind.ENUM,
        "how the client says who it is",
        ("plain", "scram-sha-256", "scram-sha-512", "gssapi", "oauthbearer"),
    ),
    _property("sasl.username", _STRING, "the user of PLAIN and SCRAM"),
    _property("sasl.password", _STRING, "the password of PLAIN and SCRAM", secret=True),
    _property("sasl.kerberos.service.name", _STRING, "the broker's name in Kerberos"),
    _property("sasl.kerberos.principal", _STRING, "this client's name in Kerberos"),
    _property("sasl.kerberos.keytab", _STRING, "the file of this client's Kerberos keys"),
    _property("sasl.oauthbearer.method", OptionKind.ENUM, "how a token is asked for", ("oidc",)),
    _property("sasl.oauthbearer.client.id", _STRING, "the client a token is asked for"),
    _property("sasl.oauthbearer.client.secret", _STRING, "its secret", secret=True),
    _property("sasl.oauthbearer.scope", _STRING, "the scope of the token"),
    _property("sasl.oauthbearer.extensions", _STRING, "key=value, .. beside the token"),
    _property("sasl.oauthbearer.token.endpoint.url", _STRING, "who gives the token", secret=True),
    _property("ssl.ca.location", _STRING, "a file or directory of certificates that are trusted"),
    _property("ssl.ca.pem", _STRING, "certificates that are trusted, as PEM"),
    _property("ssl.certificate.location", _STRING, "the file of this client's certificate, PEM"),
    _property("ssl.certificate.pem", _STRING, "this client's certificate, as PEM"),
    _property("ssl.key.location", _STRING, "the file of this client's private key, PEM"),
    _property("ssl.key.pem", _STRING, "this client's private key, as PEM", secret=True),
    _property("ssl.key.password", _STRING, "the password of the private key", secret=True),
    _property("ssl.keystore.location", _STRING, "a PKCS#12 file of key and certificate"),
    _property("ssl.keystore.password", _STRING, "its password", secret=True),
    _property("ssl.crl.location", _STRING, "the file of certificates that are revoked"),
    _property("ssl.cipher.suites", _STRING, "the ciphers that may be used"),
    _property("ssl.curves.list", _STRING, "the curves that may be used"),
    _property("ssl.sigalgs.list", _STRING, "the signatures that may be used"),
    _property(
        "ssl.endpoint.identification.algorithm",
        OptionKind.ENUM,
        "whether a broker's certificate must name its host",
        ("none", "https"),
    ),
    _property("enable.ssl.certificate.verification", _BOOL, "whether a broker's certificate is checked"),
)
"""Those of readers and writers."""

CONSUMER_PROPERTIES = (
    _property("group.id", _STRING, "the group offsets are committed to at checkpoints, for monitoring"),
    _property(
        "auto.offset.reset",
        OptionKind.ENUM,
        "where to continue when the next offset is not stored any more; none is an error",
        ("none", "earliest", "latest"),
    ),
    _property(
        "isolation.level",
        OptionKind.ENUM,
        "whether rows of aborted and open transactions are read",
        ("read_committed", "read_uncommitted"),
    ),
    _property("fetch.min.bytes", _INT, "bytes a broker waits for before it answers"),
    _property("fetch.wait.max.ms", _INT, "milliseconds it waits for them"),
    _property("fetch.max.bytes", _INT, "bytes of one answer at most"),
    _property("max.partition.fetch.bytes", _INT, "bytes of one partition in an answer"),
    _property("receive.message.max.bytes", _INT, "bytes of an answer that is accepted"),
    _property("check.crcs", _BOOL, "whether checksums of messages are checked"),
)
"""Those of readers."""
