/**
 * The claims of service account tokens and their JWT encoding. There are two types:
 *
 *   issued   by TokenRequest: has audiences, expires, may be bound to a pod, a secret or a node
 *   secret   in a Secret of type kubernetes.io/service-account-token: valid as long as that Secret contains it
 *
 * Pure; read-token.ts and authenticate-token.ts verify them.
 */
import { serviceAccountName, type Reference } from '#engine/auth/service-accounts/user.ts';
import { isRecord } from '#kube/meta.ts';

export const ISSUER = 'https://kubernetes.default.svc';
export const SECRET_ISSUER = 'kubernetes/serviceaccount';
/** The audiences of this API. */
export const API_AUDIENCES: readonly string[] = [ISSUER];
/** The lifetime that every pod requests for its token, by which Kubernetes recognizes it. */
export const POD_TOKEN_SECONDS = 60 * 60 + 7;

export interface IssuedClaims {
  readonly type: 'issued';
  readonly namespace: string;
  readonly account: Reference;
  readonly audiences: readonly string[];
  /** Seconds since the epoch, like all times here. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The lifetime that the client requested. The token is valid for longer, for clients that do not read it again. */
  readonly warnAfter?: number | undefined;
  readonly id: string;
  readonly pod?: Reference | undefined;
  readonly secret?: Reference | undefined;
  /** The pod's node if there is a pod; its uid is '' if unknown. */
  readonly node?: Reference | undefined;
}

export interface SecretClaims {
  readonly type: 'secret';
  readonly namespace: string;
  readonly account: Reference;
  readonly secretName: string;
}

export type Claims = IssuedClaims | SecretClaims;

const LEGACY = 'kubernetes.io/serviceaccount/';

export function encodeClaims(claims: Claims): Record<string, unknown> {
  const { namespace, account } = claims;
  const sub = serviceAccountName(namespace, account.name);
  if (claims.type === 'secret') {
    return {
      iss: SECRET_ISSUER,
      [`${LEGACY}namespace`]: namespace,
      [`${LEGACY}secret.name`]: claims.secretName,
      [`${LEGACY}service-account.name`]: account.name,
      [`${LEGACY}service-account.uid`]: account.uid,
      sub,
    };
  }
  const { audiences, issuedAt, expiresAt, id, pod, secret, node, warnAfter } = claims;
  return {
    aud: audiences,
    exp: expiresAt,
    iat: issuedAt,
    iss: ISSUER,
    jti: id,
    'kubernetes.io': {
      namespace,
      ...(node === undefined ? {} : { node: node.uid === '' ? { name: node.name } : node }),
      ...(pod === undefined ? {} : { pod }),
      ...(secret === undefined ? {} : { secret }),
      serviceaccount: account,
      ...(warnAfter === undefined ? {} : { warnafter: warnAfter }),
    },
    nbf: issuedAt,
    sub,
  };
}

/** Returns undefined if these are not the claims of a service account. */
export function decodeClaims(payload: unknown): Claims | undefined {
  if (!isRecord(payload)) return undefined;
  const claims = payload['iss'] === SECRET_ISSUER ? decodeSecret(payload) : decodeIssued(payload);
  if (claims === undefined || claims.namespace === '' || claims.account.name === '' || claims.account.uid === '') {
    return undefined;
  }
  return payload['sub'] === serviceAccountName(claims.namespace, claims.account.name) ? claims : undefined;
}

function decodeSecret(payload: Record<string, unknown>): SecretClaims | undefined {
  const text = (name: string) => textOf(payload[LEGACY + name]);
  const secretName = text('secret.name');
  if (secretName === '') return undefined;
  const account = { name: text('service-account.name'), uid: text('service-account.uid') };
  return { type: 'secret', namespace: text('namespace'), account, secretName };
}

function decodeIssued(payload: Record<string, unknown>): IssuedClaims | undefined {
  const { iss, aud, exp, iat, jti, 'kubernetes.io': kubernetes } = payload;
  if (iss !== ISSUER || !isRecord(kubernetes) || !Array.isArray(aud)) return undefined;
  // A token of this type that never expires is not ours.
  if (typeof exp !== 'number' || typeof iat !== 'number') return undefined;
  const account = referenceOf(kubernetes['serviceaccount']);
  if (account === undefined) return undefined;
  return {
    type: 'issued',
    namespace: textOf(kubernetes['namespace']),
    account,
    audiences: aud.filter((audience) => typeof audience === 'string'),
    issuedAt: iat,
    expiresAt: exp,
    id: textOf(jti),
    pod: referenceOf(kubernetes['pod']),
    secret: referenceOf(kubernetes['secret']),
    node: referenceOf(kubernetes['node']),
  };
}

function referenceOf(value: unknown): Reference | undefined {
  return isRecord(value) ? { name: textOf(value['name']), uid: textOf(value['uid']) } : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
