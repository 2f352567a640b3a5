/**
 * Creates X.509 v3 certificates (RFC 5280) with EC P-256 keys and ecdsa-with-SHA256. Pure except for random serials and
 * keys. authority.ts decides who issues certificates to whom.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import * as der from '#lib/pki/der.ts';
import { invariant } from '#lib/invariant.ts';

export interface CertificateSubject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

/** The use of a certificate, which decides its extensions. */
export type Purpose =
  | { readonly kind: 'authority' }
  | { readonly kind: 'server'; readonly hosts: readonly string[] }
  | { readonly kind: 'client' }
  /** Server and client at once. */
  | { readonly kind: 'peer'; readonly hosts: readonly string[] };

export interface CertificateOptions {
  readonly subject: CertificateSubject;
  readonly publicKey: KeyObject;
  /** The signer; for an authority's own certificate, its own subject and key. */
  readonly issuer: CertificateSubject;
  readonly issuerKey: KeyObject;
  readonly issuerPublicKey: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly purpose: Purpose;
}

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

const VERSION_3 = 2;
/** RFC 5280 4.1.2.2 allows 20; 16 random bytes are unique enough. */
const SERIAL_BYTES = 16;
const KEY_USAGE = { digitalSignature: 0, keyCertSign: 5, crlSign: 6 } as const;
const GENERAL_NAME = { dns: 2, ip: 7 } as const;
/** A P-256 SubjectPublicKeyInfo ends with the uncompressed point: 0x04, x, y. */
const POINT_BYTES = 65;

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function newKeyPair(): KeyPair {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

export function privateKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Returns the certificate as PEM. */
export function makeCertificate(options: CertificateOptions): string {
  invariant(options.notAfterMs > options.notBeforeMs, 'a certificate is valid for some time');
  const algorithm = der.sequence(der.oid(OID.ecdsaWithSha256));
  const toBeSigned = der.sequence(
    der.explicit(0, der.integer(VERSION_3)),
    der.integer(randomSerial()),
    algorithm,
    distinguishedName(options.issuer),
    der.sequence(der.timeElement(options.notBeforeMs), der.timeElement(options.notAfterMs)),
    distinguishedName(options.subject),
    publicKeyInfo(options.publicKey),
    der.explicit(3, der.sequence(...extensions(options))),
  );
  const signature = sign('sha256', toBeSigned, options.issuerKey);
  return pem('CERTIFICATE', der.sequence(toBeSigned, algorithm, der.bitString(signature)));
}

/**
 * Returns a certificate request (PKCS#10, RFC 2986) as PEM: the subject, signed with its key as proof of possession.
 */
export function makeRequest(subject: CertificateSubject, { publicKey, privateKey }: KeyPair): string {
  const algorithm = der.sequence(der.oid(OID.ecdsaWithSha256));
  const info = der.sequence(der.integer(0), distinguishedName(subject), publicKeyInfo(publicKey), der.noAttributes());
  const signature = sign('sha256', info, privateKey);
  return pem('CERTIFICATE REQUEST', der.sequence(info, algorithm, der.bitString(signature)));
}

/** Returns a positive serial of full length: the top bits are 01. */
function randomSerial(): Buffer {
  const serial = randomBytes(SERIAL_BYTES);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}

/** Writes organizations first, as kubeadm does. Every attribute is a set of its own. */
function distinguishedName({ commonName, organizations = [] }: CertificateSubject): Buffer {
  const attribute = (type: string, value: string) => der.setOfOne(der.sequence(der.oid(type), der.utf8String(value)));
  return der.sequence(
    ...organizations.map((name) => attribute(OID.organization, name)),
    attribute(OID.commonName, commonName),
  );
}

function extensions({ purpose, publicKey, issuerPublicKey }: CertificateOptions): Buffer[] {
  const identifiers = [
    extension(OID.subjectKeyIdentifier, der.octetString(keyIdentifier(publicKey))),
    extension(OID.authorityKeyIdentifier, der.sequence(der.implicit(0, keyIdentifier(issuerPublicKey)))),
  ];
  switch (purpose.kind) {
    case 'authority':
      return [
        extension(OID.basicConstraints, der.sequence(der.boolean(true)), { critical: true }),
        keyUsage(KEY_USAGE.digitalSignature, KEY_USAGE.keyCertSign, KEY_USAGE.crlSign),
        ...identifiers,
      ];
    case 'server':
      return [
        extension(OID.basicConstraints, der.sequence(), { critical: true }),
        keyUsage(KEY_USAGE.digitalSignature),
        extension(OID.extendedKeyUsage, der.sequence(der.oid(OID.serverAuth))),
        extension(OID.subjectAltName, der.sequence(...purpose.hosts.map(generalName))),
        ...identifiers,
      ];
    case 'client':
      return [
        extension(OID.basicConstraints, der.sequence(), { critical: true }),
        keyUsage(KEY_USAGE.digitalSignature),
        extension(OID.extendedKeyUsage, der.sequence(der.oid(OID.clientAuth))),
        ...identifiers,
      ];
    case 'peer':
      return [
        extension(OID.basicConstraints, der.sequence(), { critical: true }),
        keyUsage(KEY_USAGE.digitalSignature),
        extension(OID.extendedKeyUsage, der.sequence(der.oid(OID.serverAuth), der.oid(OID.clientAuth))),
        extension(OID.subjectAltName, der.sequence(...purpose.hosts.map(generalName))),
        ...identifiers,
      ];
  }
}

function extension(id: string, value: Buffer, { critical = false } = {}): Buffer {
  // DER omits default values, and critical is false by default.
  const flag = critical ? [der.boolean(true)] : [];
  return der.sequence(der.oid(id), ...flag, der.octetString(value));
}

function keyUsage(...bits: readonly number[]): Buffer {
  return extension(OID.keyUsage, der.namedBits(bits), { critical: true });
}

function generalName(host: string): Buffer {
  return isIP(host) === 0
    ? der.implicit(GENERAL_NAME.dns, Buffer.from(host, 'latin1'))
    : der.implicit(GENERAL_NAME.ip, ipBytes(host));
}

function publicKeyInfo(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

/** RFC 7093 method 1: the leftmost 160 bits of the SHA-256 of the public key. */
function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha256').update(publicKeyInfo(key).subarray(-POINT_BYTES)).digest().subarray(0, 20);
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

const IPV6_GROUPS = 8;

/** Returns the bytes of a valid address. Ignores a zone (`fe80::1%eth0`), because it is local to a host. */
export function ipBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  invariant(isIPv6(address), `"${address}" is an IP address`);
  const [head = '', tail] = replaceDottedTail(address.replace(/%.*$/, '')).split('::');
  const before = parseGroups(head);
  const after = tail === undefined ? [] : parseGroups(tail);
  const zeros = Array.from({ length: IPV6_GROUPS - before.length - after.length }, () => 0);
  return Buffer.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}

/** Turns `::ffff:10.0.0.1` into `::ffff:a00:1`. */
function replaceDottedTail(address: string): string {
  return address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
}

function parseGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}
