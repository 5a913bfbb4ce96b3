/** A connection of a pool, of `pg` or of `mysql2`. */
interface Connection {
  query(sql: string): Promise<unknown>
  release(): void
}

/** What an application writes around its work. The connection goes back to its pool. */
export async function transactionByHand<Tx extends Connection>(
  tx: Tx,
  work: (tx: Tx) => Promise<unknown>,
): Promise<void> {
  try {
    await tx.query('BEGIN')
    await work(tx)
    await tx.query('COMMIT')
  } catch (error) {
    await tx.query('ROLLBACK')
    throw error
  } finally {
    tx.release()
  }
}
