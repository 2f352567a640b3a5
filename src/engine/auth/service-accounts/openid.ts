/** The OpenID Connect discovery documents by which other servers verify our service account tokens, as in kube-apiserver. */
import { ISSUER } from '#engine/auth/service-accounts/claims.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { JSON_TYPE } from '#engine/encoding/media-types.ts';
import type { BytesResponse } from '#engine/request/request.ts';

export const OPENID_CONFIGURATION_PATH = '/.well-known/openid-configuration';
export const JWKS_PATH = '/openid/v1/jwks';

const HEADERS = { 'cache-control': 'public, max-age=3600' };

/** `serverAddress` is host:port. */
function openIdConfiguration(serverAddress: string): Record<string, unknown> {
  return {
    issuer: ISSUER,
    jwks_uri: `https://${serverAddress}${JWKS_PATH}`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}

/** Returns the public key only. */
export function jsonWebKeySet({ publicKey, id }: SigningKey): Record<string, unknown> {
  const { crv, x, y } = publicKey.export({ format: 'jwk' });
  return { keys: [{ use: 'sig', kty: 'EC', kid: id, crv, alg: 'ES256', x, y }] };
}

/** Returns the document at a path, or undefined for other paths. */
export function openIdDocument(path: string, key: SigningKey, serverAddress: string): BytesResponse | undefined {
  switch (path) {
    case OPENID_CONFIGURATION_PATH:
      return document(JSON_TYPE, openIdConfiguration(serverAddress));
    case JWKS_PATH:
      return document('application/jwk-set+json', jsonWebKeySet(key));
    default:
      return undefined;
  }
}

function document(contentType: string, value: object): BytesResponse {
  return { status: 200, contentType, headers: HEADERS, body: Buffer.from(JSON.stringify(value)) };
}
