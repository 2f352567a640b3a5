/**
 * Converts answers of guest agents to KubeVirt's API. A guest may send anything: malformed values are left out, and texts and
 * lists are truncated. Pure.
 */
import { isIP } from 'node:net';
import type { GuestFileSystem, GuestOsInfo, GuestUser } from '#api/guest-info.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { isRecord } from '#kube/meta.ts';

const MAX_TEXT = 256;
const MAX_ROWS = 256;
const MAX_ADDRESSES = 32;
/** Bounded because a guest may have hundreds of interfaces, and every watch receives the status. */
const MAX_INTERFACES = 32;

type GuestInterface = NonNullable<VmiStatus['interfaces']>[number];

export function readOsInfo(answer: unknown): GuestOsInfo {
  const read = textReader(answer);
  return definedFields({
    id: read('id'),
    name: read('name'),
    prettyName: read('pretty-name'),
    version: read('version'),
    versionId: read('version-id'),
    kernelRelease: read('kernel-release'),
    kernelVersion: read('kernel-version'),
    machine: read('machine'),
  });
}

export interface AgentInterface {
  readonly name?: string;
  readonly mac?: string;
  readonly addresses: readonly string[];
}

/** Returns the interfaces without the loopback. */
export function readInterfaces(answer: unknown): AgentInterface[] {
  return recordsIn(answer)
    .map((row): AgentInterface => {
      const read = textReader(row);
      const texts = recordsIn(row['ip-addresses']).flatMap((entry) => textReader(entry)('ip-address') ?? []);
      const addresses = texts.filter((text) => isIP(text) !== 0);
      const [name, mac] = [read('name'), read('hardware-address')?.toLowerCase()];
      return { addresses: addresses.slice(0, MAX_ADDRESSES), ...definedFields({ name, mac }) };
    })
    .filter(({ name }) => name !== 'lo')
    .slice(0, MAX_INTERFACES);
}

/** Returns the interfaces of the domain with the guest's data, followed by those that only the guest knows. */
export function mergeInterfaces(
  own: readonly GuestInterface[],
  reported: readonly AgentInterface[] | undefined,
): GuestInterface[] {
  if (reported === undefined) return [...own];
  const known = new Set(own.map(({ mac }) => mac?.toLowerCase()));
  const merged = own.map((entry) => {
    const found = findByMac(entry.mac, reported);
    return found === undefined ? entry : { ...entry, ...addressFields(found), infoSource: 'domain, guest-agent' };
  });
  const others = reported
    .filter(({ mac }) => mac !== undefined && !known.has(mac))
    .map((entry) => ({ mac: entry.mac!, ...addressFields(entry), infoSource: 'guest-agent' }));
  return [...merged, ...others];
}

/** Returns the first interface with addresses, because VLANs and bridges share the MAC address of their card. */
function findByMac(mac: string | undefined, reported: readonly AgentInterface[]): AgentInterface | undefined {
  const sameMac = mac === undefined ? [] : reported.filter((entry) => entry.mac === mac.toLowerCase());
  return sameMac.find(({ addresses }) => addresses.length > 0) ?? sameMac[0];
}

/** Sorts IPv4 addresses first and link-local addresses last. */
function addressFields({ name, addresses }: AgentInterface) {
  const sorted = addresses.toSorted((a, b) => addressRank(a) - addressRank(b));
  const [first] = sorted;
  return {
    ...(name !== undefined && { interfaceName: name }),
    ...(first !== undefined && { ipAddress: first, ipAddresses: sorted }),
  };
}

function addressRank(address: string): number {
  if (!address.includes(':')) return 0;
  return address.toLowerCase().startsWith('fe80:') ? 2 : 1;
}

export function readUsers(answer: unknown): GuestUser[] {
  return recordsIn(answer).map((row) => {
    const read = textReader(row);
    const loginTime = row['login-time'];
    return {
      userName: read('user') ?? '',
      ...definedFields({ domain: read('domain') }),
      ...(typeof loginTime === 'number' && Number.isFinite(loginTime) && { loginTime }),
    };
  });
}

export function readFileSystems(answer: unknown): GuestFileSystem[] {
  return recordsIn(answer).map((row) => {
    const read = textReader(row);
    const disks = recordsIn(row['disk']).map((disk) => {
      const about = textReader(disk);
      return { busType: about('bus-type') ?? '', ...definedFields({ serial: about('serial') }) };
    });
    return {
      diskName: read('name') ?? '',
      mountPoint: read('mountpoint') ?? '',
      fileSystemType: read('type') ?? '',
      usedBytes: parseBytes(row['used-bytes']),
      totalBytes: parseBytes(row['total-bytes']),
      ...(disks.length > 0 && { disk: disks }),
    };
  });
}

export function readVersion(answer: unknown) {
  const { supported_commands: commands } = isRecord(answer) ? answer : {};
  return {
    ...definedFields({ guestAgentVersion: textReader(answer)('version') }),
    supportedCommands: recordsIn(commands).map((row) => ({
      name: textReader(row)('name') ?? '',
      enabled: row['enabled'] === true,
    })),
  };
}

export const readHostName = (answer: unknown): string | undefined => textReader(answer)('host-name');

/** Returns name and offset in seconds, for example `UTC, 0`. */
export function readTimezone(answer: unknown): string | undefined {
  const { offset } = isRecord(answer) ? answer : {};
  if (typeof offset !== 'number') return undefined;
  return `${textReader(answer)('zone') ?? ''}, ${offset}`;
}

function textReader(value: unknown): (key: string) => string | undefined {
  const record = isRecord(value) ? value : {};
  return (key) => {
    const field = record[key];
    return typeof field === 'string' && field !== '' ? field.slice(0, MAX_TEXT) : undefined;
  };
}

function recordsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.slice(0, MAX_ROWS).filter(isRecord) : [];
}

function parseBytes(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
}

function definedFields<T extends Record<string, string | undefined>>(fields: T): { [K in keyof T]?: string } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: string;
  };
}
