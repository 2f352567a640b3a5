/** Facts about the node that do not change while the agent runs. */
import type { Capabilities } from '#node/hardware/capabilities.ts';

export interface NodeFacts {
  readonly name: string;
  readonly hostIp: string;
  readonly capabilities: Capabilities;
  /** True if each guest runs in a sandbox, as a user of its own. */
  readonly sandboxed: boolean;
}

/** The files of the built-in guest. */
export interface GuestKernel {
  readonly kernelPath: string;
  readonly initrdPath: string;
}
