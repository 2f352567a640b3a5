/** The kinds of a CustomResourceDefinition: one Resource for each served version. */
import {
  asCrd,
  type Crd,
  type CrdColumn,
  type CrdNames,
  type CrdVersion,
  storageVersionOf,
} from '#engine/registry/crd/definition.ts';
import type { ConversionWebhook } from '#engine/conversion/conversion-webhook.ts';
import { ConvertedForm } from '#engine/conversion/converted-form.ts';
import { type CompiledSchema, compileSchema } from '#engine/registry/structural/compile.ts';
import { ALL_VERBS, type TableColumn, type Resource } from '#engine/registry/resource.ts';
import { checkScale } from '#engine/registry/scale-rules.ts';
import { compileJsonPath } from '#kube/selectors/jsonpath.ts';
import { groupResource, type KubeObject } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

interface CustomOptions {
  /** The revision since which the definition has its current generation; 0 = before all objects. */
  readonly since?: number;
  readonly webhook?: ConversionWebhook | undefined;
}

/** For a definition that validateCrd accepted. The caller checks whether it is established. */
export function resourcesOfCrd(object: KubeObject, options: CustomOptions = {}): Resource[] {
  const crd = asCrd(object);
  const schemas = schemasOf(crd);
  return servedVersions(crd).map((version) => resourceOf(crd, version, storedForm(crd, version, schemas, options)));
}

type Schemas = (version: string) => CompiledSchema | undefined;

/** Schemas are compiled on first use and cached. */
function schemasOf({ spec }: Crd): Schemas {
  const compiled = new Map<string, CompiledSchema>();
  return (name) => {
    const version = spec.versions.find((one) => one.name === name);
    if (version === undefined) return undefined;
    let schema = compiled.get(name);
    if (schema === undefined) compiled.set(name, (schema = compileSchema(schemaOf(version))));
    return schema;
  };
}

function storedForm(
  crd: Crd,
  { name }: CrdVersion,
  schemaOf: Schemas,
  { since = 0, webhook }: CustomOptions,
): ConvertedForm {
  const storageVersion = storageVersionOf(crd) ?? name;
  const { group } = crd.spec;
  return new ConvertedForm({ group, version: name, storageVersion, since, schemaOf, webhook });
}

/** While a definition is being deleted, its objects must be accessible even if no version is served. */
function servedVersions({ metadata, spec }: Crd): readonly CrdVersion[] {
  const served = spec.versions.filter((version) => version.served);
  if (served.length > 0 || metadata.deletionTimestamp === undefined) return served;
  return spec.versions.filter(({ storage }) => storage);
}

function resourceOf(crd: Crd, version: CrdVersion, stored: ConvertedForm): Resource {
  const { group, scope } = crd.spec;
  const names = namesOf(crd);
  const scale = version.subresources?.scale;
  const kind = { group, version: version.name, kind: names.kind, plural: names.plural };
  return {
    ...kind,
    namespaced: scope === 'Namespaced',
    listKind: names.listKind ?? `${names.kind}List`,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs: ALL_VERBS,
    collection: groupResource(kind),
    storageVersion: storageVersionOf(crd) ?? version.name,
    stored,
    schema: schemaOf(version),
    columns: columnsOf(version.additionalPrinterColumns ?? []),
    status: version.subresources?.status !== undefined,
    ...(scale === undefined ? {} : { scale }),
    generation: true,
    selectableFields: selectableFieldsOf(version),
    nameRule: 'subdomain',
    builtIn: false,
    strategy: scale === undefined ? {} : { validate: (item) => checkScale(item, scale) },
    ...(version.deprecated === true ? { deprecationWarning: deprecationOf(crd, version) } : {}),
  };
}

const schemaOf = ({ schema }: CrdVersion): Schema => schema?.openAPIV3Schema ?? KEEP_ALL;

const KEEP_ALL: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A changed name takes effect once it is accepted. */
function namesOf({ spec, status }: Crd): CrdNames {
  const accepted = status?.acceptedNames;
  return accepted?.plural && accepted.kind ? accepted : spec.names;
}

function deprecationOf({ spec }: Crd, { name, deprecationWarning }: CrdVersion): string {
  return deprecationWarning ?? `${spec.group}/${name} ${spec.names.kind} is deprecated`;
}

const AGE: CrdColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time when the object was created. Set by the server.',
  jsonPath: '.metadata.creationTimestamp',
};

function columnsOf(definitions: readonly CrdColumn[]): TableColumn[] {
  if (definitions.length === 0) return [columnOf(AGE)];
  const columns: TableColumn[] = [];
  for (const definition of definitions) {
    // As in Kubernetes, an invalid path drops the remaining columns instead of failing.
    try {
      columns.push(columnOf(definition));
    } catch {
      break;
    }
  }
  return columns;
}

function columnOf({ name, type, format, description, priority, jsonPath }: CrdColumn): TableColumn {
  const find = compileJsonPath(jsonPath);
  return {
    name,
    type: type as TableColumn['type'],
    ...(format === undefined ? {} : { format }),
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    ...(priority === undefined ? {} : { priority }),
    value: (object) => cellValue(type, find(object)[0]),
  };
}

/** Returns nothing for a value that does not have the column's type; a string column prints any value. */
function cellValue(type: string, value: unknown): string | number | boolean | undefined {
  if (value === undefined || value === null) return undefined;
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : undefined;
    case 'number':
      return typeof value === 'number' ? value : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    default:
      return typeof value === 'string' ? value : undefined;
  }
}

function selectableFieldsOf({ selectableFields = [] }: CrdVersion): Resource['selectableFields'] {
  const fields: [string, (object: KubeObject) => string][] = [];
  for (const { jsonPath } of selectableFields) {
    const find = compileJsonPath(jsonPath);
    fields.push([jsonPath.replace(/^\./, ''), (object) => fieldText(find(object)[0])]);
  }
  return Object.fromEntries(fields);
}

/** An absent field selects as the empty string. */
function fieldText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
