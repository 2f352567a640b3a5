/** Reads the ExecCredential that an exec plugin prints. Problems never quote the output, which contains secrets. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { ClientCredential } from '#client/credentials/credential-source.ts';
import { isRecord } from '#kube/meta.ts';

interface ExecCredential {
  readonly credential: ClientCredential;
  /** The earlier one of expirationTimestamp and the end of the certificate; undefined if there is neither. */
  readonly expiresAtMs: number | undefined;
}

export function parseExecCredential(stdout: string, apiVersion: string): ExecCredential | { readonly problem: string } {
  const object = parseObject(stdout);
  if (object === undefined) return { problem: 'its output is not a JSON object' };
  if (object['kind'] !== 'ExecCredential') return { problem: 'its output is not an ExecCredential' };
  if (object['apiVersion'] !== apiVersion) {
    return { problem: `its output has another apiVersion than the kubeconfig; expected ${apiVersion}` };
  }
  const status = object['status'];
  if (!isRecord(status)) return { problem: 'its output has no status' };
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = status;
  for (const [field, value] of Object.entries({ token, clientCertificateData, clientKeyData, expirationTimestamp })) {
    if (value !== undefined && value !== null && typeof value !== 'string') {
      return { problem: `status.${field} of its output is not a string` };
    }
  }
  return checkCredential({
    token: textOf(token),
    clientCertificate: textOf(clientCertificateData),
    clientKey: textOf(clientKeyData),
    expiration: textOf(expirationTimestamp),
  });
}

function checkCredential({
  expiration,
  ...credential
}: ClientCredential & { readonly expiration: string | undefined }): ExecCredential | { readonly problem: string } {
  const { token, clientCertificate, clientKey } = credential;
  if (token === undefined && clientCertificate === undefined && clientKey === undefined) {
    return { problem: 'its output has neither a token nor a certificate with its key' };
  }
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    return { problem: 'its output has only one of clientCertificateData and clientKeyData; expected both or neither' };
  }
  // Other characters would break the header, and Node quotes the value in its error.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    return { problem: 'the token in its output contains spaces or other characters that a header cannot have' };
  }
  const ends: number[] = [];
  if (expiration !== undefined) {
    const atMs = Date.parse(expiration);
    if (Number.isNaN(atMs)) return { problem: 'status.expirationTimestamp of its output is not a time (RFC 3339)' };
    ends.push(atMs);
  }
  if (clientCertificate !== undefined && clientKey !== undefined) {
    const endsAtMs = endOfCertificate(clientCertificate, clientKey);
    if (endsAtMs === undefined) return { problem: 'the certificate and key in its output are not a pair in PEM' };
    ends.push(endsAtMs);
  }
  return { credential, expiresAtMs: ends.length === 0 ? undefined : Math.min(...ends) };
}

/** Returns when the certificate expires, or undefined if it is unreadable or the key is not its key. */
function endOfCertificate(certificate: string, key: string): number | undefined {
  try {
    const parsed = new X509Certificate(certificate);
    return parsed.checkPrivateKey(createPrivateKey(key)) ? parsed.validToDate.getTime() : undefined;
  } catch {
    return undefined;
  }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    // The error quotes the text.
    return undefined;
  }
}

/** Treats an empty string as absent, as client-go does. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
