/* h2_errors.c - why a message of HTTP/2 was refused, in words. */
#include "h2_text.h"

static const struct {
    const char *name, *text;
} errors[EF_H2_E_COUNT] = {
    [EF_H2_E_NONE] = {"none", "no error"},
    [EF_H2_E_PSEUDO] = {"pseudo", "a pseudo field that this message cannot have"},
    [EF_H2_E_PSEUDO_REPEATED] = {"pseudo_repeated", "a pseudo field twice"},
    [EF_H2_E_PSEUDO_LATE] = {"pseudo_late", "a pseudo field behind a field"},
    [EF_H2_E_PSEUDO_MISSING] = {"pseudo_missing", "a pseudo field is missing"},
    [EF_H2_E_METHOD] = {"method", "the method is not supported"},
    [EF_H2_E_SCHEME] = {"scheme", "the target's scheme is not the connection's"},
    [EF_H2_E_PATH] = {"path", "the path is not valid"},
    [EF_H2_E_PROTOCOL] = {"protocol", "the protocol is not supported"},
    [EF_H2_E_STATUS] = {"status", "the status is not valid"},
    [EF_H2_E_NAME] = {"name", "a field's name is not a lower-case token"},
    [EF_H2_E_VALUE] = {"value", "a field's value has control bytes, or spaces around it"},
    [EF_H2_E_CONNECTION] = {"connection", "a field of HTTP/1.1's connection"},
    [EF_H2_E_TE] = {"te", "TE other than trailers"},
    [EF_H2_E_HOST] = {"host", "Host is not :authority"},
    [EF_H2_E_CONTENT_LENGTH] = {"content_length", "Content-Length twice, or not that of the body"},
    [EF_H2_E_TRAILER] = {"trailer", "a field that is not allowed in trailers"},
    [EF_H2_E_TOO_LARGE] = {"too_large", "the head is too large"},
    [EF_H2_E_HEAD] = {"head", "the head is not valid"},
    [EF_H2_E_DISAGREE] = {"disagree", "the head reads differently as HTTP/1.1"},
};

static int is_known(int error) { return error >= 0 && error < EF_H2_E_COUNT; }

const char *ef_h2_error_text(int error) { return is_known(error) ? errors[error].text : "unknown error"; }
const char *ef_h2_error_name(int error) { return is_known(error) ? errors[error].name : "unknown"; }
