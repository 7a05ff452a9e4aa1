import { DataSource } from 'typeorm';
import { readConfig } from '../config/config.js';
import { databaseOptions } from './database-options.js';
import { joinDatabase } from './open-database.js';

/** For the TypeORM command line, such as `npm run typeorm -- migration:show`. */
const database = await joinDatabase(readConfig().database);

// The command line prints its results with its logger.
export default new DataSource({ ...databaseOptions(database.config), logger: 'advanced-console' });
