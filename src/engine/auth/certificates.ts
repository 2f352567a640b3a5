/**
 * The engine's own PKI in one directory: ca.{crt,key} (created once, never replaced) and server.{crt,key} (renewed at
 * start and while running). Client certificates are issued on demand and kept by the caller.
 *
 * Each key is written before its certificate. A CA key without certificate is an interrupted first start: the certificate
 * is created from the key. A CA certificate without key is damage and reported as such.
 */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { ensurePrivateDir, readPrivateFile, writePrivateFile } from '#lib/files/private-file.ts';
import { issue, makeAuthority } from '#lib/pki/authority.ts';
import type { Authority, IssuedCertificate } from '#lib/pki/authority.ts';
import { newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import type { Purpose, CertificateSubject } from '#lib/pki/x509.ts';
import type { Log } from '#lib/log.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const CA_DAYS = 3650;
const SERVER_DAYS = 365;
const RENEW_BEFORE_DAYS = 30;

const CA_SUBJECT: CertificateSubject = { commonName: 'selfsame-ca' };
const SERVER_SUBJECT: CertificateSubject = { commonName: 'selfsame-apiserver' };

export class PkiError extends Error {
  override name = 'PkiError';
}

interface PkiOptions {
  readonly dir: string;
  /** DNS names and IP addresses of the server. */
  readonly hosts: readonly string[];
  readonly now: () => number;
  readonly log: Log;
}

export type { IssuedCertificate } from '#lib/pki/authority.ts';

interface ClientCertificateOptions {
  /** The user name (CN). */
  readonly user: string;
  /** The groups of the user (O). */
  readonly groups: readonly string[];
  readonly days: number;
}

interface ServerCertificateOptions {
  readonly name: string;
  /** DNS names and IP addresses of the server. */
  readonly hosts: readonly string[];
  readonly days: number;
}

export interface Pki {
  readonly caPem: string;
  readonly server: IssuedCertificate;
  /** Returns the current certificate, or a new one if it expires soon. */
  renewServer(): Promise<IssuedCertificate>;
  issueClientCertificate(options: ClientCertificateOptions): IssuedCertificate;
  /** Issues a certificate for a server that this server connects to, such as a node agent. */
  issueServerCertificate(options: ServerCertificateOptions): IssuedCertificate;
}

/** Creates missing files and renews due ones; idempotent. Throws PkiError. */
export async function ensurePki({ dir, hosts, now, log }: PkiOptions): Promise<Pki> {
  await ensurePrivateDir(dir);
  const authority = await ensureAuthority(dir, now(), log);
  const renewServer = () => ensureServer(dir, authority, [...new Set(hosts)], now(), log);
  return {
    caPem: authority.pem,
    server: await renewServer(),
    renewServer,
    issueClientCertificate({ user, groups, days }) {
      if (user === '') throw new PkiError('Cannot issue a client certificate: the user name is empty');
      const subject = { commonName: user, organizations: groups };
      return issue(authority, { subject, purpose: { kind: 'client' }, lifetimeMs: days * DAY_MS, nowMs: now() });
    },
    issueServerCertificate({ name, hosts: reachedAs, days }) {
      const purpose: Purpose = { kind: 'server', hosts: reachedAs };
      return issue(authority, { subject: { commonName: name }, purpose, lifetimeMs: days * DAY_MS, nowMs: now() });
    },
  };
}

async function ensureAuthority(dir: string, nowMs: number, log: Log): Promise<Authority> {
  const [certPath, keyPath] = [join(dir, 'ca.crt'), join(dir, 'ca.key')];
  const [certPem, keyPem] = [await readPkiFile(certPath), await readPkiFile(keyPath)];
  if (certPem !== undefined && keyPem !== undefined) return loadAuthority(dir, certPem, keyPem, nowMs);
  if (certPem !== undefined) {
    throw new PkiError(
      `Cannot use the CA in "${dir}": ca.crt exists but ca.key is missing; ` +
        'restore ca.key, or move ca.crt away to start over with a new CA, which invalidates every issued certificate',
    );
  }
  let privateKey: KeyObject;
  if (keyPem === undefined) {
    privateKey = newKeyPair().privateKey;
    await writePrivateFile(keyPath, privateKeyPem(privateKey));
  } else {
    privateKey = parsePrivateKey(keyPath, keyPem);
  }
  const authority = makeAuthority(CA_SUBJECT, { nowMs, lifetimeMs: CA_DAYS * DAY_MS }, privateKey);
  await writePrivateFile(certPath, authority.pem);
  log.info({ dir, days: CA_DAYS }, 'Created a certificate authority');
  return authority;
}

function loadAuthority(dir: string, certPem: string, keyPem: string, nowMs: number): Authority {
  const certificate = parseCertificate(join(dir, 'ca.crt'), certPem);
  const privateKey = parsePrivateKey(join(dir, 'ca.key'), keyPem);
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new PkiError(`Cannot use the CA in "${dir}": ca.key does not belong to ca.crt; restore the pair that does`);
  }
  if (certificate.validToDate.getTime() <= nowMs) {
    throw new PkiError(
      `Cannot use the CA in "${dir}": it expired on ${certificate.validToDate.toISOString()}; ` +
        'move ca.crt and ca.key away to start over with a new CA',
    );
  }
  return { subject: CA_SUBJECT, certificate, pem: certPem, privateKey };
}

async function ensureServer(
  dir: string,
  authority: Authority,
  hosts: readonly string[],
  nowMs: number,
  log: Log,
): Promise<IssuedCertificate> {
  const [certPath, keyPath] = [join(dir, 'server.crt'), join(dir, 'server.key')];
  const [certPem, keyPem] = [await readPkiFile(certPath), await readPkiFile(keyPath)];
  if (certPem !== undefined && keyPem !== undefined) {
    const certificate = parseCertificate(certPath, certPem);
    const why = renewalReason(certificate, parsePrivateKey(keyPath, keyPem), authority, hosts, nowMs);
    if (why === undefined) return { certPem, keyPem };
    log.info({ why }, 'Renewing the server certificate');
  }
  const purpose: Purpose = { kind: 'server', hosts };
  const issued = issue(authority, { subject: SERVER_SUBJECT, purpose, lifetimeMs: SERVER_DAYS * DAY_MS, nowMs });
  await writePrivateFile(keyPath, issued.keyPem);
  await writePrivateFile(certPath, issued.certPem);
  return issued;
}

/** Returns why the server certificate must be renewed, or undefined if it is still valid. */
function renewalReason(
  certificate: X509Certificate,
  key: KeyObject,
  authority: Authority,
  hosts: readonly string[],
  nowMs: number,
): string | undefined {
  if (!certificate.checkPrivateKey(key)) return 'its key does not match: an earlier renewal was interrupted';
  if (!certificate.verify(authority.certificate.publicKey)) return 'it was not issued by this CA';
  if (certificate.validToDate.getTime() - nowMs < RENEW_BEFORE_DAYS * DAY_MS) {
    return `it expires on ${certificate.validToDate.toISOString()}`;
  }
  const named = certificate.subjectAltName?.split(', ').length ?? 0;
  const covers = (host: string) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host));
  if (named !== hosts.length || !hosts.every((host) => covers(host) !== undefined)) return 'the host names changed';
  return undefined;
}

/** Returns the text, or undefined if the file does not exist. Throws PkiError. */
export async function readPkiFile(path: string): Promise<string | undefined> {
  try {
    return await readPrivateFile(path);
  } catch (cause) {
    throw new PkiError(`Cannot read "${path}": ${(cause as Error).message}`, { cause });
  }
}

function parseCertificate(path: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new PkiError(`Cannot read "${path}": it contains no certificate; restore it`, { cause });
  }
}

function parsePrivateKey(path: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new PkiError(`Cannot read "${path}": it contains no private key; restore it`, { cause });
  }
}
