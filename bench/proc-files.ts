/** Reads CPU time and memory of processes from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks of /proc: 100 per second on every Linux that Node runs on. */
const TICK_MS = 10;

/** Returns the CPU time of all threads so far, user and system; 0 without a pid. */
export function cpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name in parentheses may contain spaces; the state after it is field 3, utime and stime are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Like cpuMs but exact to the microsecond, for work of a few ticks. Ignores threads that have ended. */
export function threadsCpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const nanoseconds = (thread: string) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]);
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + nanoseconds(thread), 0) / 1e6;
}

/** Returns the CPU time of this process and of all its children that have ended. */
export function ownCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** Returns the CPU time of all processes on this machine. */
export function machineCpuMs(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]!.split(/\s+/);
  return [user, nice, system, irq, softirq].reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** Returns the resident memory now (VmRSS) or at its maximum (VmHWM). */
export function memoryBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (found === null) throw new Error(`Cannot read ${field} of process ${pid}: it is not in /proc/${pid}/status`);
  return Number(found[1]) * 1024;
}

/** Returns the PSS: resident memory, with shared pages divided among the processes that share them. */
export function proportionalBytes(pid: number): number {
  const found = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'));
  if (found === null) throw new Error(`Cannot read the PSS of process ${pid}: it is not in /proc/${pid}/smaps_rollup`);
  return Number(found[1]) * 1024;
}
