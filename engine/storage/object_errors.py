"""What an object store's failure means: whether it may pass, and what to do about it."""

from __future__ import annotations

import re

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import masked

# the library's text of an answer: "status code: 403 Forbidden: <Error><Code>AccessDenied</Code>.."
_STATUS = re.compile(r"status code: (\d{3})")
_ERROR_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,200})")

_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (of Google: GOOGLE_APPLICATION_CREDENTIALS, of Azure: "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY)"
)
_REGION = "set AWS_REGION to the region of the bucket"
_RIGHTS = "the user needs the rights to list, read, write and delete below the prefix"


@dataclass(frozen=True)
class StoreFault:
    """A failure of a request. ``code`` None: the object is missing. ``passes``: it is worth another try."""

    code: str | None
    sentence: str
    hint: str | None = None
    passes: bool = False
    detail: str | None = None


# by the store's own word, which says more than the status
_BY_WORD = {
    "NoSuchBucket": ("DAT-5504", "the bucket does not exist", "make the bucket, or correct its name"),
    "ContainerNotFound": ("DAT-5504", "the container does not exist", "make it, or correct its name"),
    "InvalidBucketName": ("DAT-5504", "the bucket's name is not valid", "correct the name of the bucket"),
    "AccessDenied": ("DAT-5506", "access is denied", _RIGHTS),
    "AuthorizationPermissionMismatch": ("DAT-5506", "access is denied", _RIGHTS),
    "ExpiredToken": ("DAT-5507", "the credentials have expired", "renew the credentials, then start again"),
    "TokenRefreshRequired": ("DAT-5507", "the credentials have expired", "renew the credentials"),
    "RequestTimeTooSkewed": ("DAT-5507", "this machine's clock is wrong", "set the clock of this machine"),
    "InvalidAccessKeyId": ("DAT-5505", "the access key is not known there", _CREDENTIALS),
    "SignatureDoesNotMatch": ("DAT-5505", "the secret key is not the right one", _CREDENTIALS),
    "AuthenticationFailed": ("DAT-5505", "the credentials are not valid", _CREDENTIALS),
    "InvalidToken": ("DAT-5505", "the session token is not valid", _CREDENTIALS),
    "PermanentRedirect": ("DAT-5508", "the bucket is in another region", _REGION),
    "AuthorizationHeaderMalformed": ("DAT-5508", "the bucket is in another region", _REGION),
    "IllegalLocationConstraintException": ("DAT-5508", "the bucket is in another region", _REGION),
}
_PASSING_STATUS = {"408", "425", "429", "500", "502", "503", "504"}
_PASSING_WORDS = ("SlowDown", "RequestTimeout", "InternalError", "ServerBusy", "OperationAborted")
_CONNECTION = (
    "error sending request",
    "connection",
    "timed out",
    "timeout",
    "dns error",
    "broken pipe",
    "incomplete",
    "error decoding response body",
)
_REACH = "check the endpoint and the network; what was not stored yet is stored later"


def fault_of(error: BaseException) -> StoreFault:
    """Return what a failure of the library means. Its long text is cut to the sentence of the store."""
    text = str(error)
    status = match[1] if (match := _STATUS.search(text)) else ""
    word = match[1] if (match := _ERROR_CODE.search(text)) else ""
    if word in _BY_WORD:
        code, sentence, hint = _BY_WORD[word]
        return StoreFault(code, f"{sentence} ({word})", hint)
    if isinstance(error, FileNotFoundError):
        return StoreFault(None, "there is no such object")
    told = masked(match[1]) if (match := _MESSAGE.search(text)) else ""
    shown = " ".join(part for part in (status, word, told) if part)
    if status in _PASSING_STATUS or word in _PASSING_WORDS:
        slow = status in ("429", "503") or word == "SlowDown"
        what = "it asks for fewer requests" if slow else "it fails for now"
        return StoreFault("DAT-5509", f"{what} ({shown})", _REACH, passes=True)
    if status in ("401", "403"):
        return StoreFault("DAT-5506", f"access is denied ({shown})", _RIGHTS)
    if "redirect" in text.lower():
        return StoreFault("DAT-5508", "the bucket is in another region", _REGION)
    first = masked(text.split("Debug source", 1)[0].strip())
    if not status and _no_credentials(first):
        return StoreFault("DAT-5505", "there are no credentials", _CREDENTIALS)
    if not status and any(word in first.lower() for word in _CONNECTION):
        return StoreFault("DAT-5509", "nothing answers there", _REACH, passes=True, detail=_end_of(first))
    if status == "404":
        return StoreFault("DAT-5504", f"there is nothing of this name ({shown})", "correct the URL")
    return StoreFault("DAT-5510", shown or _end_of(first), "read the store's answer")


def _no_credentials(text: str) -> bool:
    # the library asks the metadata server of the cloud when nothing else is set
    return "169.254.169.254" in text or "metadata" in text.lower() or "credential" in text.lower()


def _end_of(text: str) -> str:
    """Return the last part of a text that the library has wrapped several times, of at most 200 letters."""
    return text.replace("\n", " ").strip()[-200:] or "it gives no reason"
