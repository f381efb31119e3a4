// Dex without its gRPC interface, as an identity provider for tests.
//
// The one argument is a JSON file. People and clients are read-only and live in this process; all else (refresh tokens,
// signing keys) is in PostgreSQL.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/connectors"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/server/tokens"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/sql"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"
)

type person struct {
	storage.Password
	// In plain text: it is hashed at the start.
	Secret string `json:"password"`
}

type config struct {
	Issuer       string           `json:"issuer"`
	Address      string           `json:"address"`
	Database     sql.Postgres     `json:"database"`
	Clients      []storage.Client `json:"clients"`
	People       []person         `json:"people"`
	KeysRotation string           `json:"keysRotation"`
	IDTokens     string           `json:"idTokens"`
}

func main() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, logger); err != nil {
		logger.Error("dex ends", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *slog.Logger) error {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	now := func() time.Time { return time.Now().UTC() }
	store, err := c.Database.Open(logger)
	if err != nil {
		return err
	}
	defer store.Close()
	if store, err = withStatic(store, c, logger); err != nil {
		return err
	}
	valid, err := time.ParseDuration(c.IDTokens)
	if err != nil {
		return err
	}
	local := signer.LocalConfig{KeysRotationPeriod: c.KeysRotation}
	keys, err := local.Open(ctx, store, valid, now, logger)
	if err != nil {
		return err
	}
	refresh, err := tokens.NewRefreshTokenPolicy(logger, false, "", "", "")
	if err != nil {
		return err
	}
	handler, err := server.NewServer(ctx, server.Config{
		Issuer:             c.Issuer,
		Storage:            store,
		AllowedGrantTypes:  []string{"authorization_code", "refresh_token", "password"},
		PasswordConnector:  connectors.LocalConnector,
		SkipApprovalScreen: true,
		IDTokensValidFor:   valid,
		RefreshTokenPolicy: refresh,
		Signer:             keys,
		Logger:             logger,
		Now:                now,
		PrometheusRegistry: prometheus.NewRegistry(),
		HealthChecker:      gosundheit.New(),
	})
	if err != nil {
		return err
	}
	web := &http.Server{Addr: c.Address, Handler: handler}
	go func() {
		<-ctx.Done()
		web.Close()
	}()
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func withStatic(store storage.Storage, c config, logger *slog.Logger) (storage.Storage, error) {
	passwords := make([]storage.Password, len(c.People))
	for i, p := range c.People {
		hash, err := bcrypt.GenerateFromPassword([]byte(p.Secret), bcrypt.DefaultCost)
		if err != nil {
			return nil, err
		}
		passwords[i] = p.Password
		passwords[i].Hash = hash
	}
	store = storage.WithStaticClients(store, c.Clients)
	store = storage.WithStaticPasswords(store, passwords, logger)
	people := storage.Connector{ID: connectors.LocalConnector, Type: connectors.LocalConnector, Name: "People"}
	return storage.WithStaticConnectors(store, []storage.Connector{people}), nil
}
