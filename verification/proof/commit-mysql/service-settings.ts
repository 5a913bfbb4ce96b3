export interface ServiceSettings {
  /** Of the database, by a way that may lose what it likes. */
  readonly commandsUrl: string
  readonly applicationUrl: string
}

/** A header: a transaction is open on each connection of the store's pool. */
export const COMMITS_NOTHING = 'x-commits-nothing'
