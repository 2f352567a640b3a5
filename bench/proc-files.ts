/** What Linux tells about a running process. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks of /proc: 100 per second on every Linux that Node runs on. */
const TICK_MS = 10;

/** CPU time of all threads so far, user and system; 0 of a process that is not known. */
export function cpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name in parentheses may hold spaces; the state behind it is field 3, utime and stime are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** The same to the microsecond, for what takes only a few ticks. Threads that have ended do not count. */
export function threadsCpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const nanoseconds = (thread: string) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]);
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + nanoseconds(thread), 0) / 1e6;
}

/** CPU time of this process and of all its children that have ended. */
export function ownCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** CPU time that anybody used on this machine. */
export function machineCpuMs(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]!.split(/\s+/);
  return [user, nice, system, irq, softirq].reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** VmRSS: what is resident now; VmHWM: the most that ever was. */
export function memoryBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (found === null) throw new Error(`Cannot read ${field} of process ${pid}: /proc does not tell it`);
  return Number(found[1]) * 1024;
}

/** PSS: resident, and a page that several processes share counts for each only in part. */
export function proportionalBytes(pid: number): number {
  const found = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'));
  if (found === null) throw new Error(`Cannot read the PSS of process ${pid}: /proc does not tell it`);
  return Number(found[1]) * 1024;
}
