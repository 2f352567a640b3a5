import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { executeImport } from '#cli/transfer/execute-import.ts';
import type { ImportPlan } from '#cli/transfer/import-plan.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';

const PLAN: ImportPlan = {
  vm: {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', labels: { app: 'shop', [PROTECTION_LABEL]: 'True' } },
    spec: { runStrategy: 'Halted', template: {} },
  },
  claims: [],
  secrets: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'db-seed-cloudinit' } }],
  uploads: [],
  notes: [],
};

async function* noFiles(): AsyncGenerator<never> {}

/** Executes the plan on a server that refuses to delete protected VMs, and returns what was done. */
async function run({ refuses }: { readonly refuses?: string } = {}) {
  const done: string[] = [];
  const labelsOf = (body: unknown) =>
    JSON.stringify((body as { metadata: { labels?: Record<string, string> } }).metadata.labels ?? {});
  let isProtected = false;
  const write = (verb: string, path: string, body: unknown) => {
    const [, resource = ''] = /([^/]+)(?:\/db)?$/.exec(path) ?? [];
    if (resource === refuses) throw new Error(`${resource} are refused`);
    if (path.includes('dryRun')) return;
    isProtected ||= labelsOf(body).includes(PROTECTION_LABEL);
    done.push(`${verb} ${resource} ${labelsOf(body)}`);
  };
  const api = {
    namespace: 'lab',
    get: () => Promise.reject(new Error('not used')),
    openWebSocket: () => Promise.reject(new Error('not used')),
    post: async (path: string, body: unknown) => {
      write('create', path, body);
      return { metadata: { uid: 'uid' } };
    },
    patch: async (path: string, body: unknown) => write('patch', path, body),
    remove: async () => {
      assert.ok(!isProtected, 'a protected VM cannot be deleted');
      done.push('delete');
    },
  };
  const error = await executeImport(api, PLAN, noFiles, {} as StatusOutput).then(
    () => undefined,
    (cause: unknown) => (cause as Error).message,
  );
  return { done, error };
}

const UNPROTECTED = 'create virtualmachines {"app":"shop"}';

test('protects an imported VM when it is complete', async () => {
  assert.deepEqual(await run(), {
    done: [UNPROTECTED, 'create secrets {}', `patch virtualmachines {"${PROTECTION_LABEL}":"True"}`],
    error: undefined,
  });
});

test('deletes a VM that was to be protected if the import fails', async () => {
  assert.deepEqual(await run({ refuses: 'secrets' }), {
    done: [UNPROTECTED, 'delete'],
    error: 'Cannot import VM db: secrets are refused\nDeleted again: VirtualMachine db',
  });
});
