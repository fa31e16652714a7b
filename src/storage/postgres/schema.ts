/**
 * The schema in PostgreSQL: one table, and a function that is a commit (stores contract, 1.3).
 *
 * The function locks all keys that it checks, counts or writes, always in the same order, and then looks at them. At
 * READ COMMITTED each of its statements sees what was committed before that statement began, so what it sees after
 * locking stays true until it ends. Nothing is ever aborted and repeated, as SERIALIZABLE transactions are, and absence
 * can be checked, which no lock of a row can do.
 */

/** Locks: one that a load holds against all commits, and one for each key, numbered by a hash. */
const createCommit = `
CREATE OR REPLACE FUNCTION postern_commit(
  check_keys bytea[], check_values bytea[],
  count_keys bytea[], count_adds text[], count_mosts text[],
  delete_keys bytea[], put_keys bytea[], put_values bytea[], put_checksums bigint[]
) RETURNS TABLE (kind text, at bytea) LANGUAGE plpgsql AS $$
DECLARE
  lock_number bigint;
  is_held_up boolean := false;
  place int;
  stored bytea;
  befores numeric[];
  afters numeric[];
  adds numeric[];
  mosts numeric[];
  counted bytea[] := '{}';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'postern commits at READ COMMITTED only';
  END IF;
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    RAISE EXCEPTION 'synchronous_commit is %: a commit would not be durable', current_setting('synchronous_commit');
  END IF;
  LOCK TABLE postern_records IN ROW EXCLUSIVE MODE;
  FOR lock_number IN
    SELECT DISTINCT ('x' || left(md5(one), 16))::bit(64)::bigint AS number
    FROM unnest(check_keys || count_keys || delete_keys || put_keys) AS one ORDER BY number
  LOOP
    PERFORM pg_advisory_xact_lock(lock_number);
  END LOOP;

  FOR place IN 1 .. cardinality(check_keys) LOOP
    SELECT value INTO stored FROM postern_records WHERE key = check_keys[place];
    IF stored IS DISTINCT FROM check_values[place] THEN
      is_held_up := true;
      kind := 'conflict'; at := check_keys[place]; RETURN NEXT;
    END IF;
  END LOOP;
  IF is_held_up THEN RETURN; END IF;

  FOR place IN 1 .. cardinality(count_keys) LOOP
    SELECT value INTO stored FROM postern_records WHERE key = count_keys[place];
    befores := coalesce(string_to_array(convert_from(stored, 'SQL_ASCII'), ' ')::numeric[], '{}');
    adds := string_to_array(count_adds[place], ' ')::numeric[];
    mosts := string_to_array(nullif(count_mosts[place], ''), ' ')::numeric[];
    afters := ARRAY(SELECT coalesce(befores[i], 0) + adds[i] FROM generate_subscripts(adds, 1) AS i ORDER BY i);
    IF EXISTS (SELECT FROM generate_subscripts(adds, 1) AS i WHERE adds[i] > 0 AND afters[i] > mosts[i]) THEN
      is_held_up := true;
      kind := 'full'; at := count_keys[place]; RETURN NEXT;
    END IF;
    counted := counted || CASE WHEN 0 = ALL (afters) THEN ''::bytea
      ELSE convert_to(array_to_string(afters, ' '), 'SQL_ASCII') END;
  END LOOP;
  IF is_held_up THEN RETURN; END IF;

  DELETE FROM postern_records WHERE key = ANY (delete_keys);
  FOR place IN 1 .. cardinality(count_keys) LOOP
    IF counted[place] = ''::bytea THEN
      DELETE FROM postern_records WHERE key = count_keys[place];
    ELSE
      INSERT INTO postern_records VALUES (count_keys[place], counted[place], NULL)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = NULL;
    END IF;
  END LOOP;
  INSERT INTO postern_records SELECT * FROM unnest(put_keys, put_values, put_checksums)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum;
END $$`

/**
 * `checksum` is NULL where the database itself has counted. Values are compressed nowhere: most are small, and the
 * larger ones are JSON that is read as a whole.
 */
const createTable = `
CREATE TABLE IF NOT EXISTS postern_records (
  key bytea PRIMARY KEY,
  value bytea NOT NULL,
  checksum bigint
)`

/** The number of the advisory lock under which a schema is made. Any constant will do. */
const makingLock = 7_075_831_902_417

/** The statements that make the schema, or change nothing where it is there; to be run in one transaction. */
export const schema: readonly string[] = [`SELECT pg_advisory_xact_lock(${makingLock})`, createTable, createCommit]
