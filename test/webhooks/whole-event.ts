import { documentedFields, type Fields, type Kind } from './document-fields.js'

/** A right value of each kind. */
const RIGHT: Readonly<Record<Kind, unknown>> = {
  string: 'some text',
  enumeration: 'a value that no sample shows',
  number: 12.5,
  boolean: false,
  object: {},
  array: [],
  'not specified': { seconds: 1 },
}

/** An event with a right value in each field that is documented. */
export function wholeEvent(type: keyof typeof documentedFields): Record<string, unknown> {
  const event: Record<string, unknown> = {}
  const fields: Fields = documentedFields[type]
  for (const [path, kind] of Object.entries(fields)) put(event, path, structuredClone(RIGHT[kind]))
  return { ...event, type }
}

/** Puts a value where a path such as `payload.apps[0].id` leads. */
export function put(event: object, path: string, value: unknown): void {
  const { parent, last } = ends(event, path)
  parent[last] = value
}

export function remove(event: object, path: string): void {
  const { parent, last } = ends(event, path)
  if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete parent[last]
}

function ends(event: object, path: string): { parent: Record<string, unknown>; last: string } {
  const steps = path.split(/[.[\]]+/).filter(Boolean)
  const last = steps.pop() ?? ''
  const parent = steps.reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], event)
  return { parent: parent as Record<string, unknown>, last }
}
