/** What was sent about a VM besides its devices. Pure. */
import { HOST_CODES, type HostStatus } from '#api/host-api.ts';
import type { Domain } from '#api/domain/domain.ts';
import { bootFault } from '#node/host-api/boot-string.ts';
import { isEmpty } from '#node/host-api/key-rules.ts';
import { integerOf, isOn, shown, wholeOf, wordOf, type SentMap } from '#node/host-api/sent-values.ts';

export interface VmConf {
  readonly vmId: string;
  readonly vmName: string;
  readonly memoryMib: number;
  readonly cpu: NonNullable<Domain['cpu']>;
  readonly machine: string;
  readonly acpi: boolean;
  /** Of the firmware: what the guest sees. */
  readonly uuid: string;
  readonly boot: string;
  readonly kernelArgs: string;
  readonly serial?: string;
  readonly clock?: NonNullable<Domain['clock']>;
  /** Of the process of the guest; 0 to 19, less and less of the processors. */
  readonly nice: number;
  /** As it was sent: whether hosts of old gave the VM the channel of their agent. */
  readonly vmchannel: unknown;
}

export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const REQUIRED = ['vmId', 'memSize', 'display'];
/** As with the hosts of old, who knew no other chipset. */
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

/** The refusal of a call that lacks what no VM can do without. */
export function missingParameters(sent: SentMap, required: readonly string[] = REQUIRED): HostStatus | undefined {
  const missing = required.filter((key) => sent[key] === undefined || sent[key] === '' || sent[key] === null);
  if (sent['memSize'] === 0 || sent['memSize'] === '0') missing.push('memSize');
  const { code, message } = HOST_CODES.missingParameter;
  return missing.length === 0 ? undefined : { code, message: `${message}: ${[...new Set(missing)].join(', ')}` };
}

/** Undefined where it is none. Ids are compared in lower case. */
export function vmIdOf(value: unknown): string | undefined {
  const id = wordOf(value)?.toLowerCase();
  return id !== undefined && UUID.test(id) ? id : undefined;
}

export function vmConf(sent: SentMap, faults: string[]): VmConf {
  const vmId = vmIdOf(sent['vmId']);
  if (vmId === undefined) faults.push(`vmId: ${shown(sent['vmId'])} is no UUID`);
  const vmName = sent['vmName'] === undefined ? `n${vmId}` : wordOf(sent['vmName']);
  if (vmName === undefined || vmName.length > MAX_NAME) {
    faults.push(`vmName: ${shown(sent['vmName'])}; expected a text of at most ${MAX_NAME} characters`);
  }
  const uuid = sent['uuid'] === undefined ? vmId : vmIdOf(sent['uuid']);
  if (uuid === undefined && vmId !== undefined) faults.push(`uuid: ${shown(sent['uuid'])} is no UUID`);
  const memoryMib = wholeOf(sent['memSize']);
  if (memoryMib === undefined) faults.push(`memSize: ${shown(sent['memSize'])}; expected a whole number of MiB`);
  const boot = wordOf(sent['boot']) ?? '';
  const fault = bootFault(boot);
  if (fault !== undefined) faults.push(fault);
  return {
    vmId: vmId ?? '',
    vmName: vmName ?? '',
    memoryMib: memoryMib ?? 0,
    cpu: cpuOf(sent, faults),
    machine: wordOf(sent['emulatedMachine']) ?? DEFAULT_MACHINE,
    acpi: sent['acpiEnable'] === undefined || isOn(sent['acpiEnable']),
    uuid: uuid ?? '',
    boot,
    kernelArgs: wordOf(sent['kernelArgs']) ?? '',
    ...serialOf(sent, faults),
    ...clockOf(sent, faults),
    nice: niceOf(sent, faults),
    vmchannel: sent['vmchannel'],
  };
}

function serialOf({ serial }: SentMap, faults: string[]): Pick<VmConf, 'serial'> {
  if (isEmpty(serial)) return {};
  const text = wordOf(serial);
  if (text !== undefined && text.length <= MAX_SERIAL) return { serial: text };
  faults.push(`serial: ${shown(serial)}; expected a text of at most ${MAX_SERIAL} characters`);
  return {};
}

/** `tdf` repeats ticks of the clock that were missed, `pitReinjection` those of the timer. */
function clockOf({ timeOffset, tdf, pitReinjection }: SentMap, faults: string[]): Pick<VmConf, 'clock'> {
  const offsetSeconds = isEmpty(timeOffset) ? 0 : integerOf(timeOffset);
  if (offsetSeconds === undefined || Math.abs(offsetSeconds) > MAX_OFFSET_SECONDS) {
    faults.push(`timeOffset: ${shown(timeOffset)}; expected seconds, at most ${MAX_OFFSET_SECONDS} to either side`);
    return {};
  }
  const timer = {
    ...(!isEmpty(tdf) && isOn(tdf) && { rtc: { tickPolicy: 'catchup' as const } }),
    ...(!isEmpty(pitReinjection) && !isOn(pitReinjection) && { pit: { tickPolicy: 'delay' as const } }),
  };
  const clock = {
    ...(offsetSeconds !== 0 && { utc: { offsetSeconds } }),
    ...(Object.keys(timer).length > 0 && { timer }),
  };
  return Object.keys(clock).length === 0 ? {} : { clock };
}

/** Processes of guests are not the administrator's, and cannot be preferred to others. */
function niceOf({ nice }: SentMap, faults: string[]): number {
  const value = isEmpty(nice) ? 0 : integerOf(nice);
  if (value !== undefined && value >= 0 && value <= MAX_NICE) return value;
  faults.push(`nice: ${shown(nice)}; expected a whole number from 0 to ${MAX_NICE}`);
  return 0;
}

function cpuOf(sent: SentMap, faults: string[]): VmConf['cpu'] {
  const count = (key: string) => {
    const number = wholeOf(sent[key] ?? 1) ?? 0;
    if (number < 1) faults.push(`${key}: ${shown(sent[key])}; expected a whole number from 1 on`);
    return Math.max(1, number);
  };
  const [smp, cores, threads] = [count('smp'), count('smpCoresPerSocket'), count('smpThreadsPerCore')];
  const sockets = smp / cores / threads;
  if (!Number.isInteger(sockets)) {
    faults.push(`smp: ${smp} CPUs are no whole number of sockets of ${cores} cores with ${threads} threads`);
  }
  const model = wordOf(sent['cpuType']);
  return { sockets, cores, threads, ...(model === undefined ? {} : { model: CPU_TYPES.get(model) ?? model }) };
}
