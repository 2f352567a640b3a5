/** Read-only interface to the examined machine: this one (this-machine.ts), or a fake in tests. */

export interface MachineFile {
  readonly isDirectory: boolean;
  /** True if this process may read and write it. */
  readonly isWritable: boolean;
}

/** The result of running a program. */
interface ProgramResult {
  /** Standard output and standard error. */
  readonly text: string;
  /** True if it exited with 0. */
  readonly works: boolean;
}

export interface ExaminedMachine {
  readonly isRoot: boolean;
  readonly nodeVersion: string;
  /**
   * Runs a program; undefined if it does not exist. Programs of node agents are searched in the system directories,
   * programs of users in their PATH.
   */
  run(program: string, args: readonly string[], calledBy: 'agent' | 'user'): Promise<ProgramResult | undefined>;
  /** Returns undefined if the file does not exist. */
  file(path: string): Promise<MachineFile | undefined>;
  /** Returns the content, or '' if it cannot be read. */
  text(path: string): Promise<string>;
  /** Returns the free bytes for this process; undefined if unknown. */
  freeBytes(path: string): Promise<number | undefined>;
  isAlive(pid: number): boolean;
  /** Reports whether a program listens there. */
  isTaken(host: string, port: number): Promise<boolean>;
}
