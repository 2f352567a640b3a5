/**
 * The key that signs service account tokens: EC P-256 (ES256), created once and kept in sa.key of the PKI's directory.
 * Its holder can impersonate any account; losing it invalidates every token.
 */
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { PkiError, readPkiFile } from '#engine/auth/certificates.ts';
import { ensurePrivateDir, writePrivateFile } from '#lib/files/private-file.ts';
import { newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';

export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The key id in tokens and in the key set, derived as in kube-apiserver. */
  readonly id: string;
}

/** Creates the key if it does not exist; idempotent. Throws PkiError for a file without such a key. */
export async function ensureSigningKey(dir: string): Promise<SigningKey> {
  const path = join(dir, 'sa.key');
  await ensurePrivateDir(dir);
  const pem = await readPkiFile(path);
  if (pem !== undefined) return signingKey(parse(path, pem));
  const made = newSigningKey();
  await writePrivateFile(path, privateKeyPem(made.privateKey));
  return made;
}

/** Creates a key that is lost when the process ends. */
export function newSigningKey(): SigningKey {
  return signingKey(newKeyPair().privateKey);
}

function signingKey(privateKey: KeyObject): SigningKey {
  const publicKey = createPublicKey(privateKey);
  const id = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
  return { privateKey, publicKey, id };
}

function parse(path: string, pem: string): KeyObject {
  const restore = 'restore it, or move it away to start over, which invalidates every issued service account token';
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (cause) {
    throw new PkiError(`Cannot read "${path}": it contains no private key; ${restore}`, { cause });
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new PkiError(`Cannot read "${path}": it contains no EC P-256 key; ${restore}`);
  }
  return key;
}
