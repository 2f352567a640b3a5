/**
 * What a guest agent answers, as KubeVirt's API tells it. A guest may answer anything: what has not the shape that it
 * should have is left out, texts are cut, lists end. Pure.
 */
import { isIP } from 'node:net';
import type { GuestFileSystem, GuestOsInfo, GuestUser } from '#api/guest-info.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { isRecord } from '#kube/meta.ts';

const MAX_TEXT = 256;
const MAX_ROWS = 256;
const MAX_ADDRESSES = 32;
/** A guest may have hundreds of bridges of its own; a status travels to everybody who watches. */
const MAX_INTERFACES = 32;

export type GuestInterface = NonNullable<VmiStatus['interfaces']>[number];

export function readOsInfo(answer: unknown): GuestOsInfo {
  const read = fieldsOf(answer);
  return present({
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

/** Without the loopback, which every guest has. */
export function readInterfaces(answer: unknown): AgentInterface[] {
  return rowsOf(answer)
    .map((row): AgentInterface => {
      const read = fieldsOf(row);
      const told = rowsOf(row['ip-addresses']).flatMap((entry) => fieldsOf(entry)('ip-address') ?? []);
      const addresses = told.filter((text) => isIP(text) !== 0);
      const [name, mac] = [read('name'), read('hardware-address')?.toLowerCase()];
      return { addresses: addresses.slice(0, MAX_ADDRESSES), ...present({ name, mac }) };
    })
    .filter(({ name }) => name !== 'lo')
    .slice(0, MAX_INTERFACES);
}

/** The interfaces of the domain with what the guest says of them, and those that only the guest knows of. */
export function mergeInterfaces(
  own: readonly GuestInterface[],
  said: readonly AgentInterface[] | undefined,
): GuestInterface[] {
  if (said === undefined) return [...own];
  const known = new Set(own.map(({ mac }) => mac?.toLowerCase()));
  const merged = own.map((entry) => {
    const found = saidOf(entry.mac, said);
    return found === undefined ? entry : { ...entry, ...told(found), infoSource: 'domain, guest-agent' };
  });
  const others = said
    .filter(({ mac }) => mac !== undefined && !known.has(mac))
    .map((entry) => ({ mac: entry.mac!, ...told(entry), infoSource: 'guest-agent' }));
  return [...merged, ...others];
}

/** VLANs and bridges of a guest have the MAC address of the card below them: the first that has addresses counts. */
function saidOf(mac: string | undefined, said: readonly AgentInterface[]): AgentInterface | undefined {
  const named = mac === undefined ? [] : said.filter((entry) => entry.mac === mac.toLowerCase());
  return named.find(({ addresses }) => addresses.length > 0) ?? named[0];
}

/** IPv4 first: that is what people look for. What is only for the link comes last. */
function told({ name, addresses }: AgentInterface) {
  const sorted = addresses.toSorted((a, b) => rankOf(a) - rankOf(b));
  const [first] = sorted;
  return {
    ...(name !== undefined && { interfaceName: name }),
    ...(first !== undefined && { ipAddress: first, ipAddresses: sorted }),
  };
}

function rankOf(address: string): number {
  if (!address.includes(':')) return 0;
  return address.toLowerCase().startsWith('fe80:') ? 2 : 1;
}

export function readUsers(answer: unknown): GuestUser[] {
  return rowsOf(answer).map((row) => {
    const read = fieldsOf(row);
    const loginTime = row['login-time'];
    return {
      userName: read('user') ?? '',
      ...present({ domain: read('domain') }),
      ...(typeof loginTime === 'number' && Number.isFinite(loginTime) && { loginTime }),
    };
  });
}

export function readFileSystems(answer: unknown): GuestFileSystem[] {
  return rowsOf(answer).map((row) => {
    const read = fieldsOf(row);
    const disks = rowsOf(row['disk']).map((disk) => {
      const about = fieldsOf(disk);
      return { busType: about('bus-type') ?? '', ...present({ serial: about('serial') }) };
    });
    return {
      diskName: read('name') ?? '',
      mountPoint: read('mountpoint') ?? '',
      fileSystemType: read('type') ?? '',
      usedBytes: bytesIn(row['used-bytes']),
      totalBytes: bytesIn(row['total-bytes']),
      ...(disks.length > 0 && { disk: disks }),
    };
  });
}

export function readVersion(answer: unknown) {
  const { supported_commands: commands } = isRecord(answer) ? answer : {};
  return {
    ...present({ guestAgentVersion: fieldsOf(answer)('version') }),
    supportedCommands: rowsOf(commands).map((row) => ({
      name: fieldsOf(row)('name') ?? '',
      enabled: row['enabled'] === true,
    })),
  };
}

export const readHostName = (answer: unknown): string | undefined => fieldsOf(answer)('host-name');

/** `UTC, 0`: the name, and seconds east of it. */
export function readTimezone(answer: unknown): string | undefined {
  const { offset } = isRecord(answer) ? answer : {};
  if (typeof offset !== 'number') return undefined;
  return `${fieldsOf(answer)('zone') ?? ''}, ${offset}`;
}

function fieldsOf(value: unknown): (key: string) => string | undefined {
  const record = isRecord(value) ? value : {};
  return (key) => {
    const field = record[key];
    return typeof field === 'string' && field !== '' ? field.slice(0, MAX_TEXT) : undefined;
  };
}

function rowsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.slice(0, MAX_ROWS).filter(isRecord) : [];
}

function bytesIn(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
}

function present<T extends Record<string, string | undefined>>(fields: T): { [K in keyof T]?: string } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: string;
  };
}
