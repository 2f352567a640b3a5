/** Parses the parameters of a VM, except for its devices. Pure. */
import { HOST_CODES, type HostStatus } from '#api/host-api.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { checkBootString } from '#node/host-api/sent/boot-string.ts';
import { isBlank } from '#node/host-api/sent/key-rules.ts';
import {
  readInteger,
  isEnabled,
  quoteSentValue,
  readWholeNumber,
  readWord,
  type SentMap,
} from '#node/host-api/sent/sent-values.ts';

export interface VmConf {
  readonly vmId: string;
  readonly vmName: string;
  readonly memoryMib: number;
  readonly cpu: NonNullable<DomainSpec['cpu']>;
  readonly machine: string;
  readonly acpi: boolean;
  /** The firmware UUID, which the guest sees. */
  readonly uuid: string;
  readonly boot: string;
  readonly kernelArgs: string;
  readonly serial?: string;
  readonly clock?: NonNullable<DomainSpec['clock']>;
  /** The niceness of the guest's process, 0 to 19. */
  readonly nice: number;
  /** As it was sent. Unless this is off, oVirt's hosts gave the VM the channel of their agent. */
  readonly vmchannel: unknown;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const REQUIRED = ['vmId', 'memSize', 'display'];
/** i440fx, the only chipset of oVirt's hosts at that time. */
const DEFAULT_MACHINE = 'pc';
const MAX_NAME = 255;
const MAX_SERIAL = 256;
/** A hundred years. */
const MAX_OFFSET_SECONDS = 100 * 366 * 24 * 3600;
const MAX_NICE = 19;
const CPU_TYPES: ReadonlyMap<string, string> = new Map([
  ['hostPassthrough', 'host-passthrough'],
  ['hostModel', 'host-model'],
]);

/** Returns a refusal if a required parameter is missing. */
export function checkRequired(sent: SentMap, required: readonly string[] = REQUIRED): HostStatus | undefined {
  const missing = required.filter((key) => sent[key] === undefined || sent[key] === '' || sent[key] === null);
  if (sent['memSize'] === 0 || sent['memSize'] === '0') missing.push('memSize');
  const { code, message } = HOST_CODES.missingParameter;
  return missing.length === 0 ? undefined : { code, message: `${message}: ${[...new Set(missing)].join(', ')}` };
}

/** Returns the UUID in lower case, or undefined if the value is not a UUID. */
export function readVmId(value: unknown): string | undefined {
  const id = readWord(value)?.toLowerCase();
  return id !== undefined && UUID.test(id) ? id : undefined;
}

export function parseVmConf(sent: SentMap, errors: string[]): VmConf {
  const vmId = readVmId(sent['vmId']);
  if (vmId === undefined) errors.push(`vmId: ${quoteSentValue(sent['vmId'])}; expected a UUID`);
  const vmName = sent['vmName'] === undefined ? `n${vmId}` : readWord(sent['vmName']);
  if (vmName === undefined || vmName.length > MAX_NAME) {
    errors.push(`vmName: ${quoteSentValue(sent['vmName'])}; expected a string of at most ${MAX_NAME} characters`);
  }
  const uuid = sent['uuid'] === undefined ? vmId : readVmId(sent['uuid']);
  if (uuid === undefined && vmId !== undefined) errors.push(`uuid: ${quoteSentValue(sent['uuid'])}; expected a UUID`);
  const memoryMib = readWholeNumber(sent['memSize']);
  if (memoryMib === undefined)
    errors.push(`memSize: ${quoteSentValue(sent['memSize'])}; expected a whole number of MiB`);
  const boot = readWord(sent['boot']) ?? '';
  const error = checkBootString(boot);
  if (error !== undefined) errors.push(error);
  return {
    vmId: vmId ?? '',
    vmName: vmName ?? '',
    memoryMib: memoryMib ?? 0,
    cpu: parseCpu(sent, errors),
    machine: readWord(sent['emulatedMachine']) ?? DEFAULT_MACHINE,
    acpi: sent['acpiEnable'] === undefined || isEnabled(sent['acpiEnable']),
    uuid: uuid ?? '',
    boot,
    kernelArgs: readWord(sent['kernelArgs']) ?? '',
    ...parseSerial(sent, errors),
    ...parseClock(sent, errors),
    nice: parseNice(sent, errors),
    vmchannel: sent['vmchannel'],
  };
}

function parseSerial({ serial }: SentMap, errors: string[]): Pick<VmConf, 'serial'> {
  if (isBlank(serial)) return {};
  const text = readWord(serial);
  if (text !== undefined && text.length <= MAX_SERIAL) return { serial: text };
  errors.push(`serial: ${quoteSentValue(serial)}; expected a string of at most ${MAX_SERIAL} characters`);
  return {};
}

/** Parses the clock. `tdf` delivers missed ticks of the real-time clock later, `pitReinjection` those of the timer. */
function parseClock({ timeOffset, tdf, pitReinjection }: SentMap, errors: string[]): Pick<VmConf, 'clock'> {
  const offsetSeconds = isBlank(timeOffset) ? 0 : readInteger(timeOffset);
  if (offsetSeconds === undefined || Math.abs(offsetSeconds) > MAX_OFFSET_SECONDS) {
    errors.push(
      `timeOffset: ${quoteSentValue(timeOffset)}; expected seconds between -${MAX_OFFSET_SECONDS} and ${MAX_OFFSET_SECONDS}`,
    );
    return {};
  }
  const timer = {
    ...(!isBlank(tdf) && isEnabled(tdf) && { rtc: { tickPolicy: 'catchup' as const } }),
    ...(!isBlank(pitReinjection) && !isEnabled(pitReinjection) && { pit: { tickPolicy: 'delay' as const } }),
  };
  const clock = {
    ...(offsetSeconds !== 0 && { utc: { offsetSeconds } }),
    ...(Object.keys(timer).length > 0 && { timer }),
  };
  return Object.keys(clock).length === 0 ? {} : { clock };
}

/** Refuses negative values, because guests do not run as root. */
function parseNice({ nice }: SentMap, errors: string[]): number {
  const value = isBlank(nice) ? 0 : readInteger(nice);
  if (value !== undefined && value >= 0 && value <= MAX_NICE) return value;
  errors.push(`nice: ${quoteSentValue(nice)}; expected a whole number from 0 to ${MAX_NICE}`);
  return 0;
}

function parseCpu(sent: SentMap, errors: string[]): VmConf['cpu'] {
  const count = (key: string) => {
    const number = readWholeNumber(sent[key] ?? 1) ?? 0;
    if (number < 1) errors.push(`${key}: ${quoteSentValue(sent[key])}; expected a whole number of 1 or more`);
    return Math.max(1, number);
  };
  const [smp, cores, threads] = [count('smp'), count('smpCoresPerSocket'), count('smpThreadsPerCore')];
  const sockets = smp / cores / threads;
  if (!Number.isInteger(sockets)) {
    errors.push(`smp: ${smp} CPUs; expected a multiple of ${cores} cores with ${threads} threads`);
  }
  const model = readWord(sent['cpuType']);
  return { sockets, cores, threads, ...(model === undefined ? {} : { model: CPU_TYPES.get(model) ?? model }) };
}
