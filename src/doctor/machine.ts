/** The port to the machine that is examined: this one (this-machine.ts), or one made up by a test. Nothing is changed. */

export interface MachineFile {
  readonly isDirectory: boolean;
  /** Whether this process may write to it. */
  readonly isWritable: boolean;
}

/** What came of calling a program. */
export interface Answer {
  /** Both of its outputs. */
  readonly text: string;
  /** Whether it ended well. */
  readonly works: boolean;
}

export interface Machine {
  readonly isRoot: boolean;
  readonly nodeVersion: string;
  /**
   * Undefined where there is no such program. Programs that run guests are looked for where the system keeps them, whatever
   * the path of the caller is; those that people call, in that path.
   */
  ask(program: string, args: readonly string[], calledBy: 'us' | 'people'): Promise<Answer | undefined>;
  /** Undefined where it is not there. */
  file(path: string): Promise<MachineFile | undefined>;
  /** Empty where it cannot be read. */
  text(path: string): Promise<string>;
  /** Bytes that this process may still write there; undefined where that cannot be told. */
  freeBytes(path: string): Promise<number | undefined>;
  isAlive(pid: number): boolean;
  /** Whether somebody listens there already. */
  isTaken(host: string, port: number): Promise<boolean>;
}
