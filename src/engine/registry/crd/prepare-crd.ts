/** Sets the server's fields of a definition before validation. */
import { asCrd, CRD_CLEANUP_FINALIZER, type Crd, storageVersionOf } from '#engine/registry/crd/definition.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

/**
 * A new definition starts without status: crdStatus accepts names later. The finalizer is set from the start, so that
 * no object can outlive its kind.
 */
export function prepareCrd(object: KubeObject): void {
  const { metadata } = object;
  if (!metadata.finalizers?.includes(CRD_CLEANUP_FINALIZER)) {
    metadata.finalizers = [...(metadata.finalizers ?? []), CRD_CLEANUP_FINALIZER];
  }
  if (!hasNames(object)) return;
  const crd = asCrd(object);
  applyNameDefaults(crd);
  crd.status = { conditions: [], acceptedNames: { plural: '', kind: '' }, storedVersions: [] };
  rememberStorageVersion(crd);
}

/** The handler has already copied the old status. */
export function prepareCrdUpdate(object: KubeObject): void {
  if (!hasNames(object)) return;
  const crd = asCrd(object);
  applyNameDefaults(crd);
  rememberStorageVersion(crd);
}

/** Reports whether the names exist. The schema rejects a definition without them afterwards. */
function hasNames({ spec }: KubeObject): boolean {
  return isRecord(spec) && isRecord(spec['names']) && Array.isArray(spec['versions']);
}

function applyNameDefaults({ spec }: Crd): void {
  const { names } = spec;
  if (!names.singular) names.singular = (names.kind ?? '').toLowerCase();
  if (!names.listKind && names.kind) names.listKind = `${names.kind}List`;
  spec.conversion ??= { strategy: 'None' };
}

function rememberStorageVersion(crd: Crd): void {
  const storage = storageVersionOf(crd);
  const status = (crd.status ??= {});
  const stored = (status.storedVersions ??= []);
  if (storage !== undefined && !stored.includes(storage)) stored.push(storage);
}
