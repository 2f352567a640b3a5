/** CEL expressions that several policies use. */
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';

/** CEL: the name of the user who sent the request. */
export const user = 'request.userInfo.username';

/** Returns a CEL string literal. The value must not contain single quotes. */
export const celText = (value: string) => `'${value}'`;
export const celList = (values: readonly string[]) => `[${values.map(celText).join(', ')}]`;
export const celMap = (values: Readonly<Record<string, string>>) =>
  `{${Object.entries(values)
    .map(([key, value]) => `${celText(key)}: ${celText(value)}`)
    .join(', ')}}`;

/** CEL: the annotation of the object, or ''. */
export const annotationOf = (object: string, annotation: string) =>
  `(has(${object}.metadata.annotations) && '${annotation}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${annotation}'] : '')`;

/** CEL: the annotation before the request, or ''. */
export const oldAnnotationOf = (annotation: string) =>
  `(request.operation == 'CREATE' ? '' : ${annotationOf('oldObject', annotation)})`;

/** CEL: the protected VMs that need the object, or ''. */
export const markOf = (object: string) => annotationOf(object, PROTECTED_VMS_ANNOTATION);

type MapField = 'labels' | 'annotations';

/** CEL: labels or annotations of the object, or an empty map. */
export const metadataMapOf = (object: string, field: MapField) =>
  `(has(${object}.metadata.${field}) ? ${object}.metadata.${field} : {})`;

/** CEL: labels or annotations before the request, or an empty map. */
const oldMapOf = (field: MapField) => `(request.operation == 'CREATE' ? {} : ${metadataMapOf('oldObject', field)})`;

/** CEL: finalizers of the object, or an empty list. */
export const finalizersOf = (object: string) =>
  `(has(${object}.metadata.finalizers) ? ${object}.metadata.finalizers : [])`;

/** CEL: the second map has all keys `k` of the first one for which `isGuarded` holds, with the same values. */
const keeps = (isGuarded: string, from: string, to: string) =>
  `${from}.all(k, !(${isGuarded}) || (k in ${to} && ${to}[k] == ${from}[k]))`;

/** CEL: the request changes no label or annotation whose key `k` fulfils `isGuarded`. */
export const keepsKeys = (field: MapField, isGuarded: string) => {
  const [is, was] = [metadataMapOf('object', field), oldMapOf(field)];
  return `${keeps(isGuarded, is, was)} && ${keeps(isGuarded, was, is)}`;
};

/** CEL: a field of the status is unchanged, or absent before and after. */
export const sameStatus = (field: string) => {
  const has = (object: string) => `(has(${object}.status) && has(${object}.status.${field}))`;
  const same = `object.status.${field} == oldObject.status.${field}`;
  return `${has('object')} == ${has('oldObject')} && (!${has('object')} || ${same})`;
};
