/** Random lives of VMs on a small subnet, with crashes between the writes of a plan. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { NetworkAddress } from '#api/network/network-address.ts';
import { planAddresses, type AddressPlan } from '#api/network/plan-addresses.ts';
import { anAddressWorld, ownerOf, storedAddress } from '#api/network/testing/address-world.ts';
import { decideAddresses } from '#controllers/network-address/decide-addresses.ts';
import type { Stored } from '#kube/meta.ts';

const SUBNETS = ['10.50.0.0/28', 'fd00:50::/120'];
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm'];
const SETTLING_ROUNDS = 6;

interface Vm {
  uid: string;
  request: Record<string, string[]>;
  interfaces: string[];
}

interface Step {
  readonly name: string;
  readonly act: 'start' | 'delete';
  readonly interfaces: number;
  /** The host number that the VM asks for; 0 if it asks for none. */
  readonly wanted: number;
  /** The number of writes before the controller crashes. */
  readonly writes: number;
}

const stepArb = fc.record<Step>({
  name: fc.constantFrom(...NAMES),
  act: fc.constantFrom('start', 'start', 'start', 'delete'),
  interfaces: fc.integer({ min: 0, max: 2 }),
  wanted: fc.constantFrom(0, 0, 0, 1, 4, 5, 6, 15),
  writes: fc.integer({ min: 0, max: 4 }),
});

/** The server: the stored addresses and VMs, and one controller that follows them. */
class Scene {
  readonly addresses = new Map<string, Stored<NetworkAddress>>();
  readonly vms = new Map<string, Vm>();
  #count = 0;

  plan(name: string): AddressPlan | undefined {
    const vm = this.vms.get(name);
    if (vm === undefined) return undefined;
    const { uid, request: requested, interfaces } = vm;
    const all = [...this.addresses.values()];
    const isAbandoned = (address: Stored<NetworkAddress>) => this.#isAbandoned(address);
    return planAddresses(
      anAddressWorld({ owner: ownerOf(name, uid), requested, interfaces, all, subnets: SUBNETS, isAbandoned }),
    );
  }

  /** Applies at most this many writes of the decision. Returns the number of writes that it had. */
  reconcile(name: string, writes = Infinity): number {
    const ofName = [...this.addresses.values()].filter(({ spec }) => spec.owner.name === name);
    const abandoned = ofName.filter((address) => this.#isAbandoned(address));
    const { changes } = decideAddresses({ plan: this.plan(name), abandoned, isInUse: () => false });
    for (const change of changes.slice(0, writes)) {
      if (change.do === 'create') {
        const object = change.object as NetworkAddress;
        const key = object.metadata.name ?? '';
        assert.ok(!this.addresses.has(key), `${key} is given twice`);
        this.addresses.set(key, storedAddress(object, `address-${++this.#count}`));
      } else if (change.do === 'delete') {
        assert.equal(this.addresses.get(change.name.name)?.metadata.uid, change.uid);
        this.addresses.delete(change.name.name);
      } else {
        const before = this.addresses.get(change.name.name)!;
        const { spec } = change.patch.body as { spec: Partial<NetworkAddress['spec']> };
        this.addresses.set(change.name.name, { ...before, spec: { ...before.spec, ...spec } });
      }
    }
    return changes.length;
  }

  #isAbandoned({ spec: { owner } }: NetworkAddress): boolean {
    return this.vms.get(owner.name)?.uid !== owner.uid;
  }

  run({ name, act, interfaces, wanted, writes }: Step): void {
    if (act === 'delete') this.vms.delete(name);
    else {
      const uid = this.vms.get(name)?.uid ?? `${name}-${++this.#count}`;
      const request: Record<string, string[]> = wanted === 0 ? {} : { n0: [`10.50.0.${wanted}`] };
      this.vms.set(name, { uid, request, interfaces: Array.from({ length: interfaces }, (_, i) => `n${i}`) });
    }
    this.reconcile(name, writes);
  }

  settle(): void {
    for (let round = 0; round < SETTLING_ROUNDS; round++) {
      const writes = NAMES.map((name) => this.reconcile(name));
      if (writes.every((count) => count === 0)) return;
    }
    assert.fail('the controller does not come to rest');
  }
}

test('no address is given twice, every VM gets what it can have, and nothing leaks', () => {
  fc.assert(
    fc.property(fc.array(stepArb, { maxLength: 40 }), (steps) => {
      const scene = new Scene();
      for (const step of steps) scene.run(step);
      scene.settle();
      for (const { spec } of scene.addresses.values()) {
        assert.equal(scene.vms.get(spec.owner.name)?.uid, spec.owner.uid, `${spec.address} belongs to a VM`);
      }
      for (const [name, { uid, interfaces, request }] of scene.vms) {
        const own = [...scene.addresses.values()].filter(({ spec }) => spec.owner.uid === uid);
        const plan = scene.plan(name);
        if (plan?.problem !== undefined) continue;
        assert.equal(own.length, interfaces.length * SUBNETS.length, `${name} has one address in each subnet`);
        const [wanted] = request['n0'] ?? [];
        if (wanted !== undefined && interfaces.length > 0) {
          assert.ok(own.some(({ spec }) => spec.address === wanted && spec.interface === 'n0'));
        }
      }
    }),
  );
});

test('a VM that asks for nothing keeps its addresses whatever others do', () => {
  fc.assert(
    fc.property(fc.array(stepArb, { maxLength: 40 }), (steps) => {
      const scene = new Scene();
      scene.run({ name: 'z', act: 'start', interfaces: 1, wanted: 0, writes: 4 });
      const before = [...scene.addresses.keys()];
      assert.equal(before.length, 2);
      for (const step of steps) {
        scene.run(step);
        scene.reconcile('z');
      }
      const after = [...scene.addresses.values()].filter(({ spec }) => spec.owner.name === 'z');
      assert.deepEqual(
        after.map(({ metadata }) => metadata.name),
        before,
      );
    }),
  );
});
