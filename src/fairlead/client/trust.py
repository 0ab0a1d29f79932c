"""Which certificates a client believes, and what is said of one that it does not.

Decides that the system's authorities count, or the certificates of one file instead, and how what OpenSSL finds becomes
one sentence. Never believes anything else, and cannot be told to believe everything. Invariant: a connection that is
handed out has shown a certificate for the very host that was asked for.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from fairlead.client.errors import Misconfigured, Untrusted

if TYPE_CHECKING:
    from fairlead.client.address import Address

_SAID = {
    9: "its certificate is not valid yet; look at the clocks of both machines",
    10: "the time of its certificate is over; whoever runs the service has to put a new one there",
}
_OTHER_HOST = frozenset({62, 64})
_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})
"""OpenSSL's numbers for what is wrong with a certificate."""
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})


def trusting(address: Address) -> ssl.SSLContext:
    """For a connection there. Raises `Misconfigured` for a file of certificates that cannot be used."""
    if not address.ca:
        return ssl.create_default_context()
    try:
        context = ssl.create_default_context(cafile=address.ca)
    except ssl.SSLError:
        raise Misconfigured(f"{address.ca} holds no certificate in the PEM format") from None
    except OSError as error:
        raise Misconfigured(f"the certificates in {address.ca} cannot be read: {error.strerror}") from None
    # The certificate of the service itself is enough: nobody else is believed then.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # As curl and a browser see it: from 3.13 on Python alone refuses one that names no key of its authority.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def untrusted(error: ssl.SSLError, address: Address) -> Untrusted:
    """What is said where there is no TLS with what answers."""
    who = f"the service at {address}"
    if not isinstance(error, ssl.SSLCertVerificationError):
        if error.reason in _NOT_TLS:
            return Untrusted(f"what answers at {address} does not speak TLS; is it http:// there?")
        reason = (error.reason or str(error)).replace("_", " ").lower()
        return Untrusted(f"no TLS with {who}: {reason}")
    if error.verify_code in _OTHER_HOST:
        return Untrusted(
            f"{who} is not to be trusted: its certificate is for other names than {address.host}; "
            f"ask for it by a name that the certificate has"
        )
    if error.verify_code in _UNKNOWN_ISSUER:
        by = f"by what is in {address.ca}" if address.ca else "by an authority that this machine knows"
        how = "" if address.ca else "; name the file with its certificate, or that of its authority: --ca FILE"
        return Untrusted(f"{who} is not to be trusted: its certificate was not signed {by}{how}")
    said = _SAID.get(error.verify_code, f"its certificate is refused: {error.verify_message}")
    return Untrusted(f"{who} is not to be trusted: {said}")
