"""The examples of RFC 7515 (A.2, A.3, A.4) and RFC 8037 (A.4), and every algorithm against the two libraries."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import import_key

from auth.jwt.issuer import ALGORITHMS, ISSUER, claims, judge, jwk, private_key, provider, token
from edgefast.auth.jwt.key_set import decode_base64url, parse_key_set
from edgefast.auth.jwt.signature import is_signed

pytestmark = [
    pytest.mark.pure,
    pytest.mark.filterwarnings("ignore:EdDSA is deprecated"),  # RFC 9864, by joserfc
]

_CLAIMS = b"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
VECTORS = [
    (
        "RS256",
        {
            "kty": "RSA",
            "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pC"
            "gNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xs"
            "mtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
            "e": "AQAB",
        },
        b"eyJhbGciOiJSUzI1NiJ9." + _CLAIMS,
        b"cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQ"
        b"jbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt"
        b"FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
    ),
    (
        "ES256",
        {
            "kty": "EC",
            "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        },
        b"eyJhbGciOiJFUzI1NiJ9." + _CLAIMS,
        b"DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    ),
    (
        "ES512",
        {
            "kty": "EC",
            "crv": "P-521",
            "x": "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
            "y": "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2",
        },
        b"eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA",
        b"AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwc"
        b"dOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn",
    ),
    (
        "EdDSA",
        {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
        b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
        b"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
    ),
]


@pytest.mark.parametrize(("alg", "key", "signed", "signature"), VECTORS)
def test_examples_of_the_rfcs(
    alg: str, key: dict[str, Any], signed: bytes, signature: bytes
) -> None:
    (parsed,) = parse_key_set(json.dumps({"keys": [key]}).encode()).keys.keys
    proof = decode_base64url(signature)
    assert proof is not None
    assert is_signed(alg, parsed, proof, signed)
    for at in range(len(proof)):
        for bit in (1, 128):
            bad = proof[:at] + bytes([proof[at] ^ bit]) + proof[at + 1 :]
            assert not is_signed(alg, parsed, bad, signed)
    for bad in (proof[:-1], proof + b"\0", b"\0" + proof, bytes(len(proof)), b""):
        assert not is_signed(alg, parsed, bad, signed)
    assert not is_signed(alg, parsed, proof, signed + b"=")


@pytest.mark.parametrize(("alg", "key", "signed", "signature"), VECTORS[:2])
def test_tokens_of_the_rfcs(alg: str, key: dict[str, Any], signed: bytes, signature: bytes) -> None:
    joe = provider(
        key, issuer="joe", audiences=(), claim_headers=(("x-root", "http://example.com/is_root"),)
    )
    outcome = judge(signed + b"." + signature, joe, now=1_300_819_379)
    assert outcome.good
    assert outcome.claims == {"iss": "joe", "exp": 1300819380, "http://example.com/is_root": True}
    assert (outcome.lines, outcome.until) == (b"x-root: true\r\n", 1_300_819_440)
    assert judge(signed + b"." + signature, joe, now=1_300_819_440).word == "expired"


@pytest.mark.parametrize("alg", ALGORITHMS)
@pytest.mark.parametrize("named", [True, False])
def test_tokens_of_both_libraries(alg: str, named: bool) -> None:
    more = {"kid": "k1"} if named else {}
    spec = provider(jwk("ES256", 9, kid="other"), jwk(alg, **more), audiences=("api", "web"))
    made = token(alg, header=more)
    signer = import_key(
        private_key(alg).private_bytes(*_PEM),
        {"RS": "RSA", "PS": "RSA", "ES": "EC"}.get(alg[:2], "OKP"),
    )
    other = joserfc_jwt.encode(
        {"alg": alg, **more}, claims(aud=["x", "web"]), signer, algorithms=[alg]
    )
    for one in (made, other.encode()):
        outcome = judge(one, spec)
        assert (outcome.word, outcome.status, outcome.provider) == ("", 0, "p")
        assert outcome.claims is not None and outcome.claims["iss"] == ISSUER
    assert judge(token(alg, 1, header=more), spec).word == "signature"


_PEM = (
    jwt.algorithms.Encoding.PEM,
    jwt.algorithms.PrivateFormat.PKCS8,
    jwt.algorithms.NoEncryption(),
)


def test_the_fully_specified_name_of_ed25519() -> None:
    from auth.jwt.issuer import b64, sign

    made = sign(b'{"alg":"Ed25519"}', json.dumps(claims()).encode(), "EdDSA")
    for member in (
        jwk("EdDSA"),
        {**jwk("EdDSA"), "alg": "EdDSA"},
        {**jwk("EdDSA"), "alg": "Ed25519"},
    ):
        assert judge(made, provider(member)).good
        assert judge(token("EdDSA"), provider(member)).good
    assert b64(b"\xff") == b"_w"
