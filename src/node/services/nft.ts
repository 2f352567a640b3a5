/** Runs nft, the program of nftables, with limits of time and output. */
import { execFile } from 'node:child_process';

/** The rule sets of the host. Tests use those of a namespace. */
export interface RuleSets {
  /** Applies commands as one transaction: all of them or none. */
  apply(text: string): Promise<void>;
  /** Returns the text of a chain, or undefined if there is no such chain. */
  readChain(table: string, chain: string): Promise<string | undefined>;
}

const TIMEOUT_MS = 10_000;
const MAX_OUTPUT_BYTES = 256 * 1024;
const MAX_QUOTED = 500;

/** `command` is nft, possibly with a program before it that enters a namespace. */
export function nftRuleSets(command: readonly [string, ...string[]] = ['nft']): RuleSets {
  return {
    async apply(text) {
      const { code, stderr } = await run([...command, '-f', '-'], text);
      if (code !== 0) throw new Error(`Cannot apply the rules of Services: nft failed: ${stderr.slice(0, MAX_QUOTED)}`);
    },
    async readChain(table, chain) {
      const { code, stdout } = await run([...command, 'list', 'chain', 'inet', table, chain], '');
      return code === 0 ? stdout : undefined;
    },
  };
}

interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Rejects if the program cannot be started or does not end in time. */
function run([program = '', ...args]: readonly string[], input: string): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve({ code: 0, stdout, stderr });
      const { code } = error as NodeJS.ErrnoException;
      if (typeof code === 'number') return resolve({ code, stdout, stderr });
      const why =
        code === 'ENOENT'
          ? `${program} is not installed; install the package nftables`
          : error.message.slice(0, MAX_QUOTED);
      reject(new Error(`Cannot run ${program}: ${why}`, { cause: error }));
    });
    child.stdin?.on('error', () => {}); // The program ended before it read everything; its exit code says why.
    child.stdin?.end(input);
  });
}
