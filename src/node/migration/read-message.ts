/** Parses the messages of messages.ts. Returns undefined for anything else. Pure. */
import { isRecord } from '#kube/meta.ts';
import type { MigrationEndpoint, MovingDisk } from '#node/hypervisor/migration.ts';
import type {
  OutcomeRequest,
  BeginMessage,
  FromSource,
  FromTarget,
  OutcomeResponse,
  SourceDirectory,
  KeepAlive,
} from '#node/migration/messages.ts';
import { readDefinition } from '#node/migration/read-definition.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Far more disks than a machine can have. */
const MAX_DISKS = 256;
const MAX_TEXT = 4096;
/** An image of EFI variables is half a mebibyte. */
const MAX_NVRAM_TEXT = 4 * 1024 * 1024;
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const UID = /^[-A-Za-z0-9]{1,64}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** Parses the first message of an incoming stream, and all later messages of a source. */
export function readFromSource(value: unknown): FromSource | OutcomeRequest | undefined {
  if (!isRecord(value)) return undefined;
  switch (value['type']) {
    case 'begin':
      return readBegin(value);
    case 'sent':
      return readSent(value);
    case 'migrated':
      return { type: 'migrated' };
    case 'aborted':
      return { type: 'aborted', message: readText(value['message']) };
    case 'outcome':
      if (!isUid(value['uid']) || !isUid(value['instanceUid'])) return undefined;
      return { type: 'outcome', uid: value['uid'], instanceUid: value['instanceUid'] };
    case 'still-there':
      return { type: 'still-there' };
    default:
      return undefined;
  }
}

export function readFromTarget(value: unknown): FromTarget | undefined {
  if (!isRecord(value)) return undefined;
  const { type } = value;
  switch (type) {
    case 'ready': {
      const endpoint = readEndpoint(value['door']);
      return endpoint && { type, door: endpoint };
    }
    case 'refused':
    case 'failed':
      return { type, message: readText(value['message']) };
    case 'arrived':
      return isCount(value['downtimeMs']) ? { type, downtimeMs: value['downtimeMs'] } : undefined;
    case 'stored':
    case 'still-there':
      return { type };
    default:
      return undefined;
  }
}

export function readOutcome(value: unknown): OutcomeResponse | KeepAlive | undefined {
  if (!isRecord(value)) return undefined;
  if (value['type'] === 'still-there') return { type: 'still-there' };
  const { type, is } = value;
  const isKnown = is === 'migrated' || is === 'aborted' || is === 'undecided';
  return type === 'outcome' && isKnown ? { type, is } : undefined;
}

function readBegin(value: Fields): BeginMessage | undefined {
  const { uid, startedAtMs, paused } = value;
  const instance = readInstance(value['instance']);
  const definition = readDefinition(value['definition']);
  const disks = readDisks(value['disks']);
  const contents = readContents(value['contents']);
  const place = value['place'] === undefined ? undefined : readPlace(value['place']);
  if (instance === undefined || definition === undefined || disks === undefined || contents === undefined) {
    return undefined;
  }
  if (!isUid(uid) || !isCount(startedAtMs) || typeof paused !== 'boolean') return undefined;
  if (value['place'] !== undefined && place === undefined) return undefined;
  return { type: 'begin', uid, instance, definition, startedAtMs, paused, disks, contents, place };
}

function readInstance(value: unknown): BeginMessage['instance'] | undefined {
  if (!isRecord(value)) return undefined;
  const { namespace, name, uid } = value;
  return isName(namespace) && isName(name) && isUid(uid) ? { namespace, name, uid } : undefined;
}

function readDisks(value: unknown): MovingDisk[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_DISKS) return undefined;
  const disks = value.map(readDisk);
  return disks.every((disk) => disk !== undefined) ? disks : undefined;
}

function readDisk(value: unknown): MovingDisk | undefined {
  if (!isRecord(value)) return undefined;
  const { deviceId, bytes, usedBytes, overlay } = value;
  if (!isShort(deviceId) || !isCount(bytes) || typeof overlay !== 'boolean') return undefined;
  if (usedBytes === undefined) return { deviceId, bytes, overlay };
  return isCount(usedBytes) ? { deviceId, bytes, usedBytes, overlay } : undefined;
}

/** Returns an object without prototype, because users choose the names in device ids. */
function readContents(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!isRecord(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.length > MAX_DISKS) return undefined;
  const contents: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [id, text] of entries) {
    if (typeof text !== 'string' || !BASE64.test(text)) return undefined;
    contents[id] = text;
  }
  return contents;
}

function readPlace(value: unknown): SourceDirectory | undefined {
  if (!isRecord(value)) return undefined;
  const { bootId, dir, identity } = value;
  if (!isShort(bootId) || !isShort(identity) || !isShort(dir)) return undefined;
  return dir.startsWith('/') && !dir.includes('\0') ? { bootId, dir, identity } : undefined;
}

function readSent(value: Fields): FromSource | undefined {
  const { nvram, sha256, standsStillMs } = value;
  if (!isCount(standsStillMs)) return undefined;
  if (nvram === undefined) return { type: 'sent', standsStillMs };
  if (typeof nvram !== 'string' || nvram.length > MAX_NVRAM_TEXT || !BASE64.test(nvram)) return undefined;
  return typeof sha256 === 'string' && SHA256.test(sha256) ? { type: 'sent', standsStillMs, nvram, sha256 } : undefined;
}

function readEndpoint(value: unknown): MigrationEndpoint | undefined {
  if (!isRecord(value)) return undefined;
  const { memory, disks, secret } = value;
  if (!isShort(memory)) return undefined;
  if ((disks !== undefined && !isShort(disks)) || (secret !== undefined && !isShort(secret))) return undefined;
  return { memory, ...(disks === undefined ? {} : { disks }), ...(secret === undefined ? {} : { secret }) };
}

const isShort = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_TEXT;
const isName = (value: unknown): value is string => typeof value === 'string' && NAME.test(value);
const isUid = (value: unknown): value is string => typeof value === 'string' && UID.test(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function readText(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : 'no reason was given';
}
