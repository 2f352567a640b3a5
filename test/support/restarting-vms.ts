/**
 * How many VMs of a simulated plane restart at a time: seen by a watch of their instances, whoever restarts them and
 * however. A VM restarts from the end of one instance on until another one runs.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import type { ApiHandler } from '#engine/request.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const ADMIN = { name: 'admin', groups: ['system:masters', 'system:authenticated'] };

export class RestartingVms {
  #most = 0;
  readonly #down = new Set<string>();
  readonly #begun = new Set<string>();

  /** Until the end of the test. All instances are up when it begins. */
  static async watch(t: TestContext, plane: VmPlane): Promise<RestartingVms> {
    const handler: ApiHandler = async (request) => await plane.server.api.core.handler(request);
    const reader = createClient(createInProcessTransport({ handler, user: ADMIN, userAgent: 'test' }));
    const { clock } = plane;
    const instances = new Informer({ reader, type: VIRTUAL_MACHINE_INSTANCES, clock, log: silentLog });
    const stopping = new AbortController();
    t.after(() => stopping.abort());
    void instances.start({ signal: stopping.signal });
    await instances.synced();
    const restarting = new RestartingVms();
    instances.onChange((key, { new: vmi }) => restarting.#see(key, vmi));
    assert.equal(restarting.begun, 0, 'all run before it begins');
    return restarting;
  }

  /** At one time. */
  get most(): number {
    return this.#most;
  }

  /** How many have restarted, or do. */
  get begun(): number {
    return this.#begun.size;
  }

  #see(key: string, vmi: Stored<VirtualMachineInstance> | undefined): void {
    if (vmi?.status?.phase === 'Running' && !isDeleting(vmi)) {
      this.#down.delete(key);
      return;
    }
    this.#down.add(key);
    this.#begun.add(key);
    this.#most = Math.max(this.#most, this.#down.size);
  }
}
