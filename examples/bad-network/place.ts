import type { Shared } from './options.js'

/** What two processes of the service share: their records and their books. */
export interface Place {
  readonly name: Shared['name']
  /** The environment of the process of a number. */
  variablesOf(process: number): Readonly<Record<string, string>>
  /** Where an effect commits with its record: how many transactions of the process have written, and are held before COMMIT. */
  readonly heldBy?: (process: number) => Promise<number>
  close(): Promise<void>
}

/** A server of our own does not outlive this process. */
export async function openPlace({ name, url }: Shared): Promise<Place> {
  // What is not used is not loaded.
  if (name === 'Postgres') return (await import('./postgres-place.js')).openPostgresPlace(url)
  return { name, variablesOf: () => ({ REDIS_URL: `${url}` }), async close() {} }
}
