/**
 * Counts how many VMs of a simulated plane restart at a time, whatever restarts them. It watches their instances: a VM
 * restarts from the end of one instance until the next one runs.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import type { ApiHandler } from '#engine/request/request.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const ADMIN = { name: 'admin', groups: ['system:masters', 'system:authenticated'] };

export class RestartingVms {
  #maxConcurrent = 0;
  readonly #down = new Set<string>();
  readonly #begun = new Set<string>();

  /** Watches until the end of the test. All instances must be running at the beginning. */
  static async watch(t: TestContext, plane: VmPlane): Promise<RestartingVms> {
    const handler: ApiHandler = async (request) => await plane.server.api.core.handler(request);
    const reader = createClient(createInProcessTransport({ handler, user: ADMIN, userAgent: 'test' }));
    const { clock } = plane;
    const instances = new Informer({ reader, type: VIRTUAL_MACHINE_INSTANCES, clock, log: silentLog });
    const stopping = new AbortController();
    t.after(() => stopping.abort());
    void instances.start({ signal: stopping.signal });
    await instances.waitForSync();
    const restarting = new RestartingVms();
    instances.onChange((key, { new: vmi }) => restarting.#observe(key, vmi));
    assert.equal(restarting.startedCount, 0, 'all instances run at the beginning');
    return restarting;
  }

  /** The largest number of VMs that restarted at the same time. */
  get maxConcurrent(): number {
    return this.#maxConcurrent;
  }

  /** The number of VMs that have begun to restart. */
  get startedCount(): number {
    return this.#begun.size;
  }

  #observe(key: string, vmi: Stored<VirtualMachineInstance> | undefined): void {
    if (vmi?.status?.phase === 'Running' && !isDeleting(vmi)) {
      this.#down.delete(key);
      return;
    }
    this.#down.add(key);
    this.#begun.add(key);
    this.#maxConcurrent = Math.max(this.#maxConcurrent, this.#down.size);
  }
}
